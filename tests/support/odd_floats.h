// Numbers that are none.
#pragma once

#include <limits>

namespace forerun {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace forerun
