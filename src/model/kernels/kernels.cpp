#include "model/kernels/kernels.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/error.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace forerun {
namespace kernels {

// Defined by kernel_set_impl.h, once per instruction set. FORERUN_COMPILED_SETS is SET(x) for each of
// those that were compiled, the best ones first.
#define SET(name)                \
  namespace name {               \
  const KernelSet& kernel_set(); \
  }
FORERUN_COMPILED_SETS
#undef SET

namespace {

// Which sets this CPU runs.
struct ThisCpu {
  bool amx = false, avx512 = false, avxvnni = false, avx2 = false, i8mm = false, neon = false;
  bool portable = true;

  ThisCpu();
};

#if defined(__x86_64__)
constexpr unsigned bit(int i) {
  return 1u << i;
}

// The system saves tiles only for programs that asked for it, and may refuse. Once granted
// it holds for all threads.
bool may_use_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

ThisCpu::ThisCpu() {
  // Not every compiler's __builtin_cpu_supports() knows these by name.
  constexpr unsigned kBasic = 1, kExtended = 7;
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool f16c = __get_cpuid(kBasic, &a, &b, &c, &d) && (c & bit(29));
  const bool tiles = __get_cpuid_count(kExtended, 0, &a, &b, &c, &d) && (d & bit(24)) && (d & bit(25));
  const bool short_vnni = __get_cpuid_count(kExtended, 1, &a, &b, &c, &d) && (a & bit(4));
  avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c;
  avxvnni = avx2 && short_vnni;
  avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vnni");
  amx = avx512 && tiles && may_use_tiles();
}
#elif defined(__aarch64__)
ThisCpu::ThisCpu() {
  neon = getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
  i8mm = neon && (getauxval(AT_HWCAP2) & HWCAP2_I8MM);
}
#else
ThisCpu::ThisCpu() = default;
#endif

std::vector<const KernelSet*> detect() {
  const ThisCpu cpu;
  std::vector<const KernelSet*> sets;
#define SET(name) \
  if (cpu.name) sets.push_back(&name::kernel_set());
  FORERUN_COMPILED_SETS
#undef SET
  return sets;
}

}  // namespace
}  // namespace kernels

std::span<const KernelSet* const> available_kernels() {
  static const std::vector<const KernelSet*> kSets = kernels::detect();
  return kSets;
}

const KernelSet& best_kernels() {
  const std::span<const KernelSet* const> sets = available_kernels();
  const char* wanted = std::getenv("FORERUN_KERNELS");
  if (wanted == nullptr || *wanted == '\0') return *sets.front();
  std::string names;
  for (const KernelSet* set : sets) {
    if (std::string_view(wanted) == set->name) return *set;
    names += names.empty() ? "" : ", ";
    names += set->name;
  }
  fail(ErrorCode::kInvalidArgument, "FORERUN_KERNELS={}: this CPU has {}", wanted, names);
}

const WeightFormat* find_format(const KernelSet& kernels, ggml_type type) {
  for (const WeightFormat& format : kernels.formats) {
    if (format.type == type) return &format;
  }
  return nullptr;
}

}  // namespace forerun
