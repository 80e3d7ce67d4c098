#include "serve/protocol/vector_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace forerun {
namespace {

std::vector<float> normalized(std::vector<float> vector, int norm) {
  normalize(vector, norm);
  return vector;
}

TEST(VectorJsonTest, Norms) {
  EXPECT_EQ(normalized({3, -4}, 2), (std::vector<float>{0.6f, -0.8f}));
  EXPECT_EQ(normalized({3, -4}, -1), (std::vector<float>{3, -4}));
  EXPECT_EQ(normalized({1, -4}, 0), (std::vector<float>{8190, -32760}));
  EXPECT_EQ(normalized({1, -3}, 1), (std::vector<float>{0.25f, -0.75f}));
  const std::vector<float> cubic = normalized({1, -2, 3}, 3);
  double sum = 0;
  for (const float x : cubic) sum += std::pow(std::abs(static_cast<double>(x)), 3);
  EXPECT_NEAR(sum, 1.0, 1e-6);
  EXPECT_EQ(normalized({0, 0}, 2), (std::vector<float>{0, 0}));
  EXPECT_EQ(normalized({}, 2), std::vector<float>());
}

TEST(VectorJsonTest, NumbersHaveNoMoreDigitsThanAFloat) {
  const std::vector<float> vector = {0.1f, -0.0f,       1e-30f,
                                     3.0f, 16777216.0f, std::numeric_limits<float>::min()};
  const Json json = vector_json(vector);
  EXPECT_EQ(to_text(json), "[0.1,-0.0,1e-30,3.0,16777216.0,1.1754944e-38]");
  EXPECT_EQ(Json::parse(to_text(json)).get<std::vector<float>>(), vector);
}

TEST(VectorJsonTest, Base64OfTheBytes) {
  EXPECT_EQ(base64_of({}), "");
  EXPECT_EQ(base64_of(std::vector<float>{1.0f}), "AACAPw==");
  EXPECT_EQ(base64_of(std::vector<float>{1.0f, -2.0f}), "AACAPwAAAMA=");
  EXPECT_EQ(base64_of(std::vector<float>{1.0f, -2.0f, 0.5f}), "AACAPwAAAMAAAAA/");
}

}  // namespace
}  // namespace forerun
