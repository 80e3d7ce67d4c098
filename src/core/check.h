// CHECK(condition): a bug of ours if it does not hold. Prints where and aborts,
// in every build type. Never used for anything input can cause (see error.h).
#pragma once

namespace forerun {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace forerun

#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::forerun::check_failed(#condition, __FILE__, __LINE__))
