// Numbers that people read.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace forerun {

// 1234567 as "1,234,567".
inline std::string grouped(int64_t number) {
  std::string text = fmt::format("{}", number);
  const size_t first_digit = number < 0 ? 1 : 0;
  for (size_t place = text.size(); place > first_digit + 3;) {
    place -= 3;
    text.insert(place, 1, ',');
  }
  return text;
}

// "1 token", "1,234 tokens".
inline std::string counted(int64_t n, const std::string& what) {
  return grouped(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace forerun
