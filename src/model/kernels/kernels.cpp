#include "model/kernels/kernels.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/error.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace forerun {
namespace kernels {

// Defined by kernel_set_impl.h, once per instruction set.
namespace amx {
const KernelSet& kernel_set();
}
namespace avx512 {
const KernelSet& kernel_set();
}
namespace avxvnni {
const KernelSet& kernel_set();
}
namespace avx2 {
const KernelSet& kernel_set();
}
namespace i8mm {
const KernelSet& kernel_set();
}
namespace neon {
const KernelSet& kernel_set();
}
namespace portable {
const KernelSet& kernel_set();
}

namespace {

#if defined(__x86_64__)
// The system saves tiles only for programs that asked for it, and may refuse. Once granted
// it holds for all threads.
bool may_use_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

std::vector<const KernelSet*> detect() {
  std::vector<const KernelSet*> sets;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni")) {
    if (may_use_tiles()) sets.push_back(&amx::kernel_set());
    sets.push_back(&avx512::kernel_set());
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    if (__builtin_cpu_supports("avxvnni")) sets.push_back(&avxvnni::kernel_set());
    sets.push_back(&avx2::kernel_set());
  }
#elif defined(__aarch64__)
  if (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) {
    if (getauxval(AT_HWCAP2) & HWCAP2_I8MM) sets.push_back(&i8mm::kernel_set());
    sets.push_back(&neon::kernel_set());
  }
#endif
  sets.push_back(&portable::kernel_set());
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
