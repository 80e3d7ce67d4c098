#include "sampling/keyed_noise.h"

#include <algorithm>
#include <bit>

#include "core/check.h"
#include "sampling/cpu_clones.h"
#include "sampling/ieee_math.h"

namespace forerun {
namespace {

constexpr uint32_t kParity = 0x1BD11BDA;

// The widest vector of 32-bit integers.
constexpr size_t kLanes = 16;

// Four rounds and the key injection that follows them.
template <int R0, int R1, int R2, int R3>
[[gnu::always_inline]] inline void four_rounds(uint32_t& x0, uint32_t& x1, uint32_t add0,
                                               uint32_t add1) {
  x0 += x1, x1 = std::rotl(x1, R0) ^ x0;
  x0 += x1, x1 = std::rotl(x1, R1) ^ x0;
  x0 += x1, x1 = std::rotl(x1, R2) ^ x0;
  x0 += x1, x1 = std::rotl(x1, R3) ^ x0;
  x0 += add0, x1 += add1;
}

[[gnu::always_inline]] inline void threefry(uint32_t k0, uint32_t k1, uint32_t& x0, uint32_t& x1) {
  const uint32_t k2 = kParity ^ k0 ^ k1;
  x0 += k0, x1 += k1;
  four_rounds<13, 15, 26, 6>(x0, x1, k1, k2 + 1);
  four_rounds<17, 29, 16, 24>(x0, x1, k2, k0 + 2);
  four_rounds<13, 15, 26, 6>(x0, x1, k0, k1 + 3);
  four_rounds<17, 29, 16, 24>(x0, x1, k1, k2 + 4);
  four_rounds<13, 15, 26, 6>(x0, x1, k2, k0 + 5);
}

constexpr uint32_t low_half(uint64_t bits) {
  return static_cast<uint32_t>(bits);
}
constexpr uint32_t high_half(uint64_t bits) {
  return static_cast<uint32_t>(bits >> 32);
}

// The first n lanes of a block; `high` holds the tokens on entry.
FORERUN_CPU_CLONES void threefry_lanes(uint64_t seed, uint32_t position, size_t n,
                                       KeyedNoise::Block& block) {
  const uint32_t k0 = low_half(seed);
  const uint32_t k1 = high_half(seed);
  for (size_t i = 0; i < n; ++i) {
    uint32_t x0 = block.high[i];
    uint32_t x1 = position;
    threefry(k0, k1, x0, x1);
    block.high[i] = x0;
    block.low[i] = x1;
  }
}

FORERUN_CPU_CLONES uint32_t largest_of(const uint32_t* x, size_t n) {
  uint32_t best = 0;
  for (size_t i = 0; i < n; ++i) best = std::max(best, x[i]);
  return best;
}

}  // namespace

std::array<uint32_t, 2> threefry2x32(std::array<uint32_t, 2> key, std::array<uint32_t, 2> counter) {
  threefry(key[0], key[1], counter[0], counter[1]);
  return counter;
}

uint64_t KeyedNoise::bits(Position position, TokenId token) const {
  const auto [high, low] =
      threefry2x32({low_half(seed_), high_half(seed_)},
                   {static_cast<uint32_t>(to_int(token)), static_cast<uint32_t>(to_int(position))});
  return uint64_t{high} << 32 | low;
}

uint32_t KeyedNoise::fill(Position position, std::span<const TokenId> tokens, Block& out) const {
  CHECK(tokens.size() <= kBlock);
  // Whole vectors only: the spare lanes cost less than a scalar rest.
  const size_t n = tokens.size();
  const size_t n_lanes = (n + kLanes - 1) / kLanes * kLanes;
  for (size_t i = 0; i < n; ++i) out.high[i] = static_cast<uint32_t>(to_int(tokens[i]));
  std::fill(out.high + n, out.high + n_lanes, 0u);
  threefry_lanes(seed_, static_cast<uint32_t>(to_int(position)), n_lanes, out);
  return largest_of(out.high, n);
}

double KeyedNoise::gumbel(uint64_t bits) {
  // An odd multiple of 2^-53: exact, and symmetric around 1/2.
  const double u = static_cast<double>(static_cast<int64_t>(bits >> 11 | 1)) * 0x1p-53;
  return -ieee::log(-ieee::log(u));
}

}  // namespace forerun
