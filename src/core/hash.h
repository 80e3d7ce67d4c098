// A 64-bit hash for fingerprints and checksums of files: the same on every machine
// and in every version. Not for security.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace forerun {

// FNV-1a over 64-bit words, each mixed; lengths are hashed too, so that "ab" + "c"
// and "a" + "bc" differ. Feed it in any number of pieces.
class Hash64 {
 public:
  void add(std::span<const std::byte> bytes) {
    mix(bytes.size());
    size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + i, 8);
      mix(word);
    }
    uint64_t tail = 0;
    for (size_t shift = 0; i < bytes.size(); ++i, shift += 8)
      tail |= static_cast<uint64_t>(bytes[i]) << shift;
    mix(tail);
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text.data(), text.size()))); }

  template <typename T>
  requires std::is_integral_v<T>
  void add_value(T value) { mix(static_cast<uint64_t>(value)); }

  uint64_t value() const {
    uint64_t h = state_;
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    return h;
  }

 private:
  void mix(uint64_t word) {
    word *= 0x9e3779b97f4a7c15ULL;
    word ^= word >> 32;
    state_ = (state_ ^ word) * 0x100000001b3ULL;
    state_ ^= state_ >> 29;
  }

  uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace forerun
