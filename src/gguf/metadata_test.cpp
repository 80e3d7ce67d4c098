#include "gguf/metadata.h"

#include <ggml-cpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"

namespace forerun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MetadataTest : public ::testing::Test {
 protected:
  gguf_context* raw() { return gguf_.get(); }
  GgufMetadata metadata() { return GgufMetadata(gguf_.get()); }

  template <typename Read>
  void expect_wrong_type(Read read) {
    try {
      read();
      FAIL() << "read a value of the wrong type";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidFile);
      EXPECT_THAT(error.what(), HasSubstr("key"));
    }
  }

 private:
  gguf_context_ptr gguf_{gguf_init_empty()};
};

TEST_F(MetadataTest, AbsentKeysAreNullopt) {
  EXPECT_FALSE(metadata().has("key"));
  EXPECT_FALSE(metadata().is_array("key"));
  EXPECT_EQ(metadata().get_int("key"), std::nullopt);
  EXPECT_EQ(metadata().get_float("key"), std::nullopt);
  EXPECT_EQ(metadata().get_bool("key"), std::nullopt);
  EXPECT_EQ(metadata().get_string("key"), std::nullopt);
  EXPECT_EQ(metadata().array_size("key"), std::nullopt);
  EXPECT_EQ(metadata().get_int_array("key"), std::nullopt);
  EXPECT_EQ(metadata().get_float_array("key"), std::nullopt);
  EXPECT_EQ(metadata().get_string_array("key"), std::nullopt);
  EXPECT_EQ(metadata().describe("key"), "");
  EXPECT_TRUE(metadata().keys().empty());
}

TEST_F(MetadataTest, IntegersOfEveryWidth) {
  gguf_set_val_u8(raw(), "u8", UINT8_MAX);
  gguf_set_val_i8(raw(), "i8", INT8_MIN);
  gguf_set_val_u16(raw(), "u16", UINT16_MAX);
  gguf_set_val_i16(raw(), "i16", INT16_MIN);
  gguf_set_val_u32(raw(), "u32", UINT32_MAX);
  gguf_set_val_i32(raw(), "i32", INT32_MIN);
  gguf_set_val_u64(raw(), "u64", 1234567890123456789u);
  gguf_set_val_i64(raw(), "i64", INT64_MIN);
  EXPECT_EQ(metadata().get_int("u8"), UINT8_MAX);
  EXPECT_EQ(metadata().get_int("i8"), INT8_MIN);
  EXPECT_EQ(metadata().get_int("u16"), UINT16_MAX);
  EXPECT_EQ(metadata().get_int("i16"), INT16_MIN);
  EXPECT_EQ(metadata().get_int("u32"), UINT32_MAX);
  EXPECT_EQ(metadata().get_int("i32"), INT32_MIN);
  EXPECT_EQ(metadata().get_int("u64"), 1234567890123456789);
  EXPECT_EQ(metadata().get_int("i64"), INT64_MIN);
  gguf_set_val_u64(raw(), "u64", UINT64_MAX);
  EXPECT_EQ(metadata().get_int("u64"), INT64_MAX) << "too large for us, but never negative";
  EXPECT_THAT(metadata().keys(), ElementsAre("u8", "i8", "u16", "i16", "u32", "i32", "i64", "u64"));
  EXPECT_EQ(metadata().describe("i8"), "-128");
}

TEST_F(MetadataTest, FloatsAndIntegersReadAsFloats) {
  gguf_set_val_f32(raw(), "f32", 0.5f);
  gguf_set_val_f64(raw(), "f64", 1e300);
  gguf_set_val_u16(raw(), "u16", 7);
  gguf_set_val_f32(raw(), "nan", std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(metadata().get_float("f32"), 0.5);
  EXPECT_EQ(metadata().get_float("f64"), 1e300);
  EXPECT_EQ(metadata().get_float("u16"), 7.0);
  EXPECT_TRUE(std::isnan(metadata().get_float("nan").value()));
  EXPECT_EQ(metadata().describe("f32"), "0.5");
}

TEST_F(MetadataTest, BoolsAndStrings) {
  gguf_set_val_bool(raw(), "yes", true);
  gguf_set_val_bool(raw(), "no", false);
  gguf_set_val_str(raw(), "text", "a b");
  EXPECT_EQ(metadata().get_bool("yes"), true);
  EXPECT_EQ(metadata().get_bool("no"), false);
  EXPECT_EQ(metadata().get_string("text"), "a b");
  EXPECT_EQ(metadata().describe("yes"), "true");
  EXPECT_EQ(metadata().describe("text"), "a b");
}

TEST_F(MetadataTest, ArraysOfEveryType) {
  const auto check_ints = [&]<typename T>(gguf_type type, T) {
    const T data[3] = {1, 0, 100};
    gguf_set_arr_data(raw(), "key", type, data, std::size(data));
    EXPECT_TRUE(metadata().is_array("key"));
    EXPECT_EQ(metadata().array_size("key"), std::size(data));
    EXPECT_THAT(metadata().get_int_array("key").value(), ElementsAre(1, 0, 100));
  };
  check_ints(GGUF_TYPE_UINT8, uint8_t{});
  check_ints(GGUF_TYPE_INT8, int8_t{});
  check_ints(GGUF_TYPE_UINT16, uint16_t{});
  check_ints(GGUF_TYPE_INT16, int16_t{});
  check_ints(GGUF_TYPE_UINT32, uint32_t{});
  check_ints(GGUF_TYPE_INT32, int32_t{});
  check_ints(GGUF_TYPE_UINT64, uint64_t{});
  check_ints(GGUF_TYPE_INT64, int64_t{});
  EXPECT_THAT(metadata().get_float_array("key").value(), ElementsAre(1.0, 0.0, 100.0));
  EXPECT_EQ(metadata().describe("key"), "[3 x i64]");

  const int8_t bools[2] = {1, 0};
  gguf_set_arr_data(raw(), "bools", GGUF_TYPE_BOOL, bools, 2);
  EXPECT_THAT(metadata().get_int_array("bools").value(), ElementsAre(1, 0));

  const float floats[2] = {0.5f, -2.0f};
  gguf_set_arr_data(raw(), "floats", GGUF_TYPE_FLOAT32, floats, 2);
  EXPECT_THAT(metadata().get_float_array("floats").value(), ElementsAre(0.5, -2.0));
  const double doubles[1] = {1e300};
  gguf_set_arr_data(raw(), "doubles", GGUF_TYPE_FLOAT64, doubles, 1);
  EXPECT_THAT(metadata().get_float_array("doubles").value(), ElementsAre(1e300));

  const char* strings[2] = {"one", ""};
  gguf_set_arr_str(raw(), "strings", strings, 2);
  EXPECT_THAT(metadata().get_string_array("strings").value(), ElementsAre("one", ""));

  gguf_set_arr_data(raw(), "empty", GGUF_TYPE_INT32, nullptr, 0);
  EXPECT_TRUE(metadata().get_int_array("empty").value().empty());
}

TEST_F(MetadataTest, WrongTypesThrow) {
  const int32_t ints[1] = {1};
  const float floats[1] = {1};
  const char* strings[1] = {"1"};

  gguf_set_val_str(raw(), "key", "1");
  expect_wrong_type([&] { metadata().get_int("key"); });
  expect_wrong_type([&] { metadata().get_float("key"); });
  expect_wrong_type([&] { metadata().get_bool("key"); });
  expect_wrong_type([&] { metadata().array_size("key"); });
  expect_wrong_type([&] { metadata().get_int_array("key"); });

  gguf_set_val_u32(raw(), "key", 1);
  expect_wrong_type([&] { metadata().get_bool("key"); });
  expect_wrong_type([&] { metadata().get_string("key"); });
  expect_wrong_type([&] { metadata().get_string_array("key"); });

  gguf_set_val_bool(raw(), "key", true);
  expect_wrong_type([&] { metadata().get_int("key"); });
  expect_wrong_type([&] { metadata().get_float("key"); });

  gguf_set_val_f32(raw(), "key", 1);
  expect_wrong_type([&] { metadata().get_int("key"); });

  gguf_set_arr_data(raw(), "key", GGUF_TYPE_INT32, ints, 1);
  expect_wrong_type([&] { metadata().get_int("key"); });
  expect_wrong_type([&] { metadata().get_string("key"); });
  expect_wrong_type([&] { metadata().get_string_array("key"); });

  gguf_set_arr_data(raw(), "key", GGUF_TYPE_FLOAT32, floats, 1);
  expect_wrong_type([&] { metadata().get_int_array("key"); });

  gguf_set_arr_str(raw(), "key", strings, 1);
  expect_wrong_type([&] { metadata().get_int_array("key"); });
  expect_wrong_type([&] { metadata().get_float_array("key"); });
}

}  // namespace
}  // namespace forerun
