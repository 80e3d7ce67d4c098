#include "model/device_logits.h"

#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/check.h"

namespace forerun {
namespace {

constexpr size_t kVocabulary = 300;
constexpr size_t kRows = 20;

class DeviceLogitsTest : public ::testing::Test {
 protected:
  DeviceLogitsTest() {
    ggml_backend_buffer_t buffer = memory_.buffer();
    CHECK(ggml_backend_tensor_alloc(buffer, logits_, ggml_backend_buffer_get_base(buffer)) ==
          GGML_STATUS_SUCCESS);
  }
  // Another pass.
  void compute(float first) {
    auto* logits = static_cast<float*>(logits_->data);
    for (size_t i = 0; i < kRows * kVocabulary; ++i) logits[i] = first + static_cast<float>(i);
  }
  bool is_right(size_t place) {
    const std::span<const float> there(static_cast<const float*>(logits_->data) + place * kVocabulary,
                                       kVocabulary);
    return std::ranges::equal(device_logits_.row(place), there);
  }

  std::shared_ptr<Device> device_ = Device::open({.name = "cpu", .n_threads = 3, .pin_threads = false});
  DeviceMemory memory_ = device_->allocate_zeroed(kRows * kVocabulary * sizeof(float), "logits");
  ggml_context_ptr context_{
      ggml_init({.mem_size = 2 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true})};
  ggml_tensor* logits_ = ggml_new_tensor_2d(context_.get(), GGML_TYPE_F32, kVocabulary, kRows);
  DeviceLogits device_logits_{*device_};
};

TEST_F(DeviceLogitsTest, RowsStayAsTheyWereWhenAskedFor) {
  compute(1);
  device_logits_.begin(logits_, 5);
  device_logits_.fetch(1, 3);
  const auto second = device_logits_.row(1), last = device_logits_.row(4);
  compute(2);  // what is copied is not copied again
  EXPECT_EQ(second[0], 1.0f + float{kVocabulary});
  EXPECT_EQ(last[0], 1.0f + 4.0f * float{kVocabulary});
  EXPECT_FALSE(is_right(1));
  EXPECT_FALSE(is_right(2));
  EXPECT_TRUE(is_right(0));
  EXPECT_TRUE(is_right(3));
}

TEST_F(DeviceLogitsTest, APassForgetsTheOneBefore) {
  for (const size_t n : {size_t{2}, kRows, size_t{7}}) {
    compute(static_cast<float>(n));
    device_logits_.begin(logits_, n);
    for (size_t place = n; place-- > 0;) EXPECT_TRUE(is_right(place)) << place << " of " << n;
  }
}

TEST_F(DeviceLogitsTest, AnyThreadMayAsk) {
  compute(3);
  device_logits_.begin(logits_, kRows);
  device_logits_.fetch(0, 2);
  std::vector<char> are_right(4 * kRows);
  device_->share_out(are_right.size(),
                     [&](int /*thread*/, size_t i) { are_right[i] = is_right(7 * i % kRows) ? 1 : 0; });
  EXPECT_EQ(std::ranges::count(are_right, 1), static_cast<std::ptrdiff_t>(are_right.size()));
}

}  // namespace
}  // namespace forerun
