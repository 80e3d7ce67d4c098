// Whether this compiler and this machine run AMX tiles. Exit code 0: they do.
//
// GCC 12's _tile_loadconfig tells the optimiser that it reads 8 of the 64 bytes of a
// configuration, so the stores of the rest are dropped when it is a local variable,
// and the first tile beyond them is an illegal instruction. Virtual machines have
// been seen to advertise AMX and fault as well.
#include <immintrin.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kRequestPermission = 0x1023, kTileData = 18 };

struct Config {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t bytes_per_row[16];
  uint8_t rows[16];
};

static int8_t a[16][64] __attribute__((aligned(64)));
static int8_t b[16][64] __attribute__((aligned(64)));
static int32_t c[16][16] __attribute__((aligned(64)));

static void __attribute__((noinline)) configure(void) {
  struct Config config __attribute__((aligned(64))) = {0};
  config.palette = 1;
  for (int tile = 0; tile < 8; ++tile) {
    config.bytes_per_row[tile] = 64;
    config.rows[tile] = 16;
  }
  _tile_loadconfig(&config);
}

int main(void) {
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) return 1;
  memset(a, 1, sizeof(a));
  memset(b, 2, sizeof(b));
  configure();
  _tile_zero(5);
  _tile_loadd(6, a, 64);
  _tile_loadd(7, b, 64);
  _tile_dpbssd(5, 6, 7);
  _tile_stored(5, c, 64);
  return c[0][0] == 128 && c[15][15] == 128 ? 0 : 1;
}
