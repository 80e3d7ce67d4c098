// Random numbers for tests.
#pragma once

#include <cstdint>
#include <span>

namespace forerun {

// Fills it with numbers that are nearly normally distributed: sums of four uniform ones. Where nothing
// is optimised and everything is checked, std::normal_distribution takes many times as long, which was
// most of the time of the tests that make models.
inline void fill_normally(std::span<float> to, uint64_t seed, float mean = 0.0f,
                          float deviation = 1.0f) {
  constexpr float kMeanOfSum = 4 * 32767.5f, kDeviationOfSum = 37837.227f;  // of four 16-bit numbers
  float* const numbers = to.data();
  const size_t n = to.size();
  for (size_t i = 0; i < n; ++i) {
    uint64_t z = seed += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    const auto sum =
        static_cast<float>((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
    numbers[i] = mean + deviation * ((sum - kMeanOfSum) / kDeviationOfSum);
  }
}

}  // namespace forerun
