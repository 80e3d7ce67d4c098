// Fingerprints of models as files and JSON have them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace forerun {

// 16 hexadecimal digits.
inline std::string fingerprint_text(uint64_t fingerprint) {
  return fmt::format("{:016x}", fingerprint);
}

}  // namespace forerun
