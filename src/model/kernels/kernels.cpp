#include "model/kernels/kernels.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/error.h"

#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace forerun {
namespace kernels {

// Defined by kernel_set_impl.h, once per instruction set.
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

std::vector<const KernelSet*> detect() {
  std::vector<const KernelSet*> sets;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni")) {
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
