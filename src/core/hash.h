// A 64-bit hash whose values may be stored: the same on every machine and in
// every version of forerun. Fast (eight bytes per multiplication) and well mixed,
// but not meant to resist an attacker.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace forerun {

class StableHash {
 public:
  static uint64_t of(std::string_view bytes) {
    uint64_t hash = mix(bytes.size(), kSeed);
    size_t pos = 0;
    for (; pos + 8 <= bytes.size(); pos += 8) hash = mix(hash, load(bytes.substr(pos, 8)));
    if (pos < bytes.size()) hash = mix(hash, load(bytes.substr(pos)));
    return hash;
  }

  void add(uint64_t value) { state_ = mix(state_, value); }
  void add(std::string_view bytes) { add(of(bytes)); }
  void add(std::span<const std::byte> bytes) {
    add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

  uint64_t value() const { return state_; }

 private:
  static_assert(std::endian::native == std::endian::little, "stored hashes are of little-endian words");
  static constexpr uint64_t kSeed = 0x9E3779B97F4A7C15u;

  static uint64_t load(std::string_view bytes) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    return word;
  }

  // The two halves of a 128-bit product, folded together.
  static uint64_t mix(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a ^ 0xD6E8FEB86659FD93u) * (b ^ 0xA0761D6478BD642Fu);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }

  uint64_t state_ = kSeed;
};

}  // namespace forerun
