#include "serve/protocol/vector_json.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <vector>

namespace forerun {
namespace {

// What llama-server makes of the largest number, for vectors that are stored as 16-bit integers.
constexpr double kLargest = 32760.0;

double size_of(std::span<const float> vector, int norm) {
  double size = 0;
  for (const float number : vector) {
    const double x = std::abs(static_cast<double>(number));
    size = norm == 0 ? std::max(size, x) : size + (norm == 2 ? x * x : std::pow(x, norm));
  }
  if (norm == 0) return size / kLargest;
  return norm == 2 ? std::sqrt(size) : std::pow(size, 1.0 / norm);
}

// The double that is written like the float.
double written_like(float number) {
  std::array<char, 32> digits;
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  double result = static_cast<double>(number);
  std::from_chars(digits.data(), written.ptr, result);
  return result;
}

}  // namespace

void normalize(std::span<float> vector, int norm) {
  if (norm < 0) return;
  const double size = size_of(vector, norm);
  const double scale = size > 0 ? 1.0 / size : 0.0;
  for (float& number : vector) number = static_cast<float>(static_cast<double>(number) * scale);
}

Json vector_json(std::span<const float> vector) {
  Json::array_t numbers;
  numbers.reserve(vector.size());
  for (const float number : vector) numbers.emplace_back(written_like(number));
  return numbers;
}

std::string base64_of(std::span<const float> vector) {
  static_assert(std::endian::native == std::endian::little);
  const std::span<const std::byte> bytes = std::as_bytes(vector);
  std::vector<unsigned char> text((bytes.size() + 2) / 3 * 4 + 1);  // and a zero
  const int n = EVP_EncodeBlock(text.data(), reinterpret_cast<const unsigned char*>(bytes.data()),
                                static_cast<int>(bytes.size()));
  return {text.begin(), text.begin() + n};
}

}  // namespace forerun
