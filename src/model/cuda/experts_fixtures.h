// A mixture of experts with random weights and rows, on the GPU and in double precision.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "model/cuda/device_array.h"
#include "model/cuda/experts.h"
#include "model/cuda/product_fixtures.h"
#include "model/cuda/rows_fixtures.h"

namespace forerun::cuda {

struct MixtureSize {
  ggml_type type;  // of gates, and of ups unless these have another
  std::optional<ggml_type> up_type = std::nullopt;
  ggml_type down_type = GGML_TYPE_F16;
  int n_embd = 512, n_ff = 256;
  int n_experts = 4, n_used = 2;
  bool has_shared = false;
  bool all_choose_same = false;

  std::string name() const {
    return std::string(ggml_type_name(type)) + ", " + ggml_type_name(down_type) + ", " +
           std::to_string(n_embd) + " x " + std::to_string(n_ff) + ", " + std::to_string(n_used) +
           " of " + std::to_string(n_experts) + (has_shared ? " and one shared" : "");
  }
};

inline void softmax(std::vector<double>& x) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& v : x) sum += v = std::exp(v - largest);
  for (double& v : x) v /= sum;
}

// What a row's router says of each expert, by the rule of the mixture.
inline std::vector<double> expert_values(const float* scores, const ExpertsConfig& config) {
  std::vector<double> values(scores, scores + config.n_all);
  if (config.gating == ExpertGating::kSoftmax) softmax(values);
  if (config.gating == ExpertGating::kSigmoid) {
    for (double& v : values) v = 1 / (1 + std::exp(-v));
  }
  return values;
}

// Experts by what they are chosen by, the best first.
inline std::vector<int> best_experts(const std::vector<double>& chosen_by) {
  std::vector<int> order(chosen_by.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return chosen_by[static_cast<size_t>(a)] > chosen_by[static_cast<size_t>(b)];
  });
  return order;
}

// The shares of those that are chosen.
inline std::vector<double> expert_shares(const std::vector<double>& values,
                                         const std::vector<int>& chosen, const ExpertsConfig& config) {
  std::vector<double> shares;
  for (const int expert : chosen) shares.push_back(values[static_cast<size_t>(expert)]);
  if (config.gating == ExpertGating::kSoftmaxOfChosen) softmax(shares);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) {
    share *= config.scale / (config.normalises ? std::max(sum, double{ExpertsConfig::kLeastSum}) : 1.0);
  }
  return shares;
}

// One matrix of every expert, as a file has it and packed.
struct ExpertStack {
  ggml_type type;
  int64_t n_in;
  Matrix one;
  std::vector<std::vector<std::byte>> files;  // of each expert
  std::unique_ptr<DeviceArray<std::byte>> packed;

  ExpertStack(ggml_type type, int64_t n_in, int64_t n_out, int n_experts, Random& random)
      : type(type), n_in(n_in), one(matrix_of(*format_of(type), n_in, n_out)) {
    packed = std::make_unique<DeviceArray<std::byte>>(one.n_bytes() * static_cast<size_t>(n_experts));
    one.data = packed->get();
    for (int expert = 0; expert < n_experts; ++expert) {
      files.push_back(random_file_rows(type, n_in, n_out, random));
      const DeviceArray<std::byte> rows(files.back());
      pack(*one.format, rows.get(), n_in, n_out,
           packed->get() + static_cast<size_t>(expert) * one.n_bytes(), nullptr);
      check(cudaDeviceSynchronize());
    }
  }
  // [output], of the values that ggml says the file has.
  std::vector<double> multiply(int expert, const std::vector<double>& x) const {
    const std::vector<std::byte>& file = files[static_cast<size_t>(expert)];
    const size_t row_bytes = ggml_row_size(type, n_in);
    std::vector<float> weights(static_cast<size_t>(n_in));
    std::vector<double> y;
    for (size_t at = 0; at < file.size(); at += row_bytes) {
      ggml_get_type_traits(type)->to_float(&file[at], weights.data(), n_in);
      y.push_back(std::inner_product(x.begin(), x.end(), weights.begin(), 0.0));
    }
    return y;
  }
};

struct TestMixture {
  MixtureSize size;
  ExpertsConfig config;
  Rows rows;
  ExpertStack gate, up, down;
  Floats scores;  // [row][expert, then how much of what is shared]
  Floats states, shared;
  float scale = 0.75f;

  TestMixture(const MixtureSize& size, int n_rows, Random& random)
      : size(size),
        rows(n_rows, size.n_embd, random),
        gate(size.type, size.n_embd, size.n_ff, size.n_experts, random),
        up(size.up_type.value_or(size.type), size.n_embd, size.n_ff, size.n_experts, random),
        down(size.down_type, size.n_ff, size.n_embd, size.n_experts, random) {
    config.n_all = size.n_experts;
    config.n_used = size.n_used;
    scale_rows();
    const auto n = static_cast<size_t>(n_rows);
    scores = random_floats(random, n * static_cast<size_t>(n_scores()));
    for (size_t i = 0; size.all_choose_same && i < scores.size(); ++i) {
      scores[i] = static_cast<float>(i % static_cast<size_t>(n_scores())) * 0.1f;
    }
    states = random_floats(random, n * static_cast<size_t>(size.n_embd));
    shared = random_floats(random, n * static_cast<size_t>(size.n_embd));
  }
  int n_scores() const { return size.n_experts + (size.has_shared ? 1 : 0); }
  const float* scores_of(int row) const {
    return scores.data() + static_cast<size_t>(row) * static_cast<size_t>(n_scores());
  }
  std::vector<double> numbers_of(int row) const {
    std::vector<double> x;
    for (int64_t k = 0; k < size.n_embd; ++k) x.push_back(__half2float(rows.at(row, k)));
    return x;
  }
  // So that gates are neither all open nor all shut, and what they let through is in the range of
  // halves.
  void scale_rows() {
    const std::vector<double> y = gate.multiply(0, numbers_of(0));
    const double squares = std::inner_product(y.begin(), y.end(), y.begin(), 0.0);
    const double factor = 2 / std::sqrt(squares / static_cast<double>(y.size()));
    for (__half& x : rows.values) x = __float2half(__half2float(x) * static_cast<float>(factor));
  }
  // The states behind it of these rows in one pass: [row][n_embd].
  Floats run(const std::vector<int>& chosen) const;

  std::vector<double> reference(int row) const {
    const std::vector<double> x = numbers_of(row);
    std::vector<double> sum(static_cast<size_t>(size.n_embd));
    const std::vector<double> values = expert_values(scores_of(row), config);
    std::vector<int> experts = best_experts(values);
    experts.resize(static_cast<size_t>(size.n_used));
    const std::vector<double> shares = expert_shares(values, experts, config);
    for (size_t rank = 0; rank < experts.size(); ++rank) {
      const std::vector<double> a = gate.multiply(experts[rank], x), b = up.multiply(experts[rank], x);
      std::vector<double> gated;
      for (size_t i = 0; i < a.size(); ++i) gated.push_back(a[i] / (1 + std::exp(-a[i])) * b[i]);
      const std::vector<double> made = down.multiply(experts[rank], gated);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += shares[rank] * made[i];
    }
    const size_t first = static_cast<size_t>(row) * sum.size();
    for (size_t i = 0; i < sum.size(); ++i) {
      if (size.has_shared) sum[i] += shared[first + i] / (1 + std::exp(-scores_of(row)[size.n_experts]));
      sum[i] = states[first + i] + scale * sum[i];
    }
    return sum;
  }
};

// Memory of a pass with so many rows, and what it launches.
class MixturePass {
 public:
  MixturePass(const TestMixture& mixture, int n_rows)
      : mixture_(mixture),
        shape_{.n_rows = n_rows, .n_used = mixture.size.n_used, .n_experts = mixture.size.n_experts},
        n_inputs_(std::max(inputs_of(mixture.gate), inputs_of(mixture.up))),
        x_(static_cast<size_t>(operand_halves(n_rows, n_inputs_))),
        scores_(of_rows(mixture.n_scores())),
        states_(of_rows(mixture.size.n_embd)),
        shared_(of_rows(shared_cut().n_outputs())),
        sum_(of_rows(mixture.size.n_embd)),
        routing_(static_cast<size_t>(routing_numbers(shape_))),
        gathered_(static_cast<size_t>(item_halves(shape_, n_inputs_))),
        gated_(static_cast<size_t>(item_halves(shape_, inputs_of(mixture.down)))) {
    if (same_types()) {
      in_ = {{.one = mixture.gate.one,
              .data = {mixture.gate.one.data, mixture.up.one.data},
              .n = 2,
              .n_used = shape_.n_used}};
    } else {
      for (const ExpertStack* stack : {&mixture.gate, &mixture.up}) {
        in_.push_back({.one = stack->one, .data = {stack->one.data}, .n = 1, .n_used = shape_.n_used});
      }
    }
    out_ = {.one = mixture.down.one, .data = {mixture.down.one.data}, .n = 1, .n_used = shape_.n_used};
    for (const ExpertMatrices& matrices : in_) in_parts_.push_back(parts_for(matrices));
    out_parts_ = parts_for(out_);
  }

  void set_rows(const std::vector<int>& chosen) {
    CHECK(static_cast<int>(chosen.size()) == shape_.n_rows);
    const auto copy = [&](auto& to, const auto& from) {
      check(cudaMemcpy(to.get(), from.data(), from.size() * sizeof(from[0]), cudaMemcpyHostToDevice));
    };
    const auto n_embd = static_cast<size_t>(mixture_.size.n_embd);
    copy(x_, mixture_.rows.operand(chosen, n_inputs_));
    copy(scores_, rows_of(mixture_.scores, chosen, static_cast<size_t>(mixture_.n_scores())));
    copy(states_, rows_of(mixture_.states, chosen, n_embd));
    Floats shared;  // as a product leaves it
    for (const int row : chosen) {
      Floats of_row = rows_of(mixture_.shared, {row}, n_embd);
      of_row.resize(static_cast<size_t>(shared_cut().n_outputs()));
      shared.insert(shared.end(), of_row.begin(), of_row.end());
    }
    copy(shared_, shared);
    check(cudaDeviceSynchronize());
  }

  void launch(cudaStream_t stream) const {
    const Routing routing = routing_at(shape_, routing_.get());
    route({.shape = shape_,
           .scores = scores_.get(),
           .n_scores = mixture_.n_scores(),
           .preference = nullptr,
           .gating = mixture_.config.gating,
           .normalises = mixture_.config.normalises,
           .scale = mixture_.config.scale,
           .routing = routing},
          stream);
    Operand x{.data = x_.get(), .padded_rows = padded(shape_.n_rows), .n_inputs = n_inputs_};
    if (shape_.is_gathered()) {
      const Operand to{.data = gathered_.get(), .padded_rows = shape_.width(), .n_inputs = n_inputs_};
      gather(shape_, routing, x, to, stream);
      x = to;
    }
    std::vector<Segment> segments;
    for (size_t i = 0; i < in_.size(); ++i) {
      multiply_experts(in_[i], shape_, routing, {.x = x, .is_of_items = shape_.is_gathered()},
                       in_parts_[i]->get(), stream);
      for (int which = 0; which < in_[i].n; ++which) {
        segments.push_back({.parts = expert_parts(in_[i], shape_, which, in_parts_[i]->get()),
                            .first = 0,
                            .n = mixture_.size.n_ff});
      }
    }
    const Operand gated_x{
        .data = gated_.get(), .padded_rows = shape_.width(), .n_inputs = inputs_of(mixture_.down)};
    gated(Gate::kSilu, segments[0], segments[1], {.n_rows = shape_.n_routes(), .n = mixture_.size.n_ff},
          routing.places, gated_x, stream);
    multiply_experts(out_, shape_, routing, {.x = gated_x, .is_of_items = true}, out_parts_->get(),
                     stream);
    Segment shared;
    if (mixture_.size.has_shared) {
      const Cut cut = shared_cut();
      shared = {.parts = {.data = shared_.get(),
                          .stride = int64_t{shape_.n_rows} * cut.n_outputs(),
                          .n_outputs = cut.n_outputs(),
                          .cut = cut},
                .first = 0,
                .n = mixture_.size.n_embd};
    }
    combine({.states = states_.get(),
             .made = {.parts = expert_parts(out_, shape_, 0, out_parts_->get()),
                      .first = 0,
                      .n = mixture_.size.n_embd},
             .shares = routing.shares,
             .n_used = shape_.n_used,
             .shared = shared,
             .shared_logits = mixture_.size.has_shared ? scores_.get() + shape_.n_experts : nullptr,
             .shared_stride = mixture_.n_scores(),
             .scale = mixture_.scale,
             .shape = {.n_rows = shape_.n_rows, .n = mixture_.size.n_embd},
             .sum = sum_.get()},
            stream);
  }
  Floats result() const { return sum_.read(); }

 private:
  using PartsMemory = std::unique_ptr<DeviceArray<float>>;
  static int64_t inputs_of(const ExpertStack& stack) {
    return padded_inputs(*stack.one.format, stack.n_in);
  }
  bool same_types() const { return mixture_.gate.type == mixture_.up.type; }
  size_t of_rows(int n) const { return static_cast<size_t>(shape_.n_rows) * static_cast<size_t>(n); }
  PartsMemory parts_for(const ExpertMatrices& matrices) const {
    return std::make_unique<DeviceArray<float>>(
        static_cast<size_t>(matrices.n * matrices.matrix_floats(shape_)));
  }
  Cut shared_cut() const {
    return {.tile_rows = 16, .n_tiles = (mixture_.size.n_embd + 15) / 16, .n_stages = 1, .n_runs = 1};
  }

  const TestMixture& mixture_;
  ExpertsShape shape_;
  int64_t n_inputs_;
  DeviceArray<__half> x_;
  DeviceArray<float> scores_, states_, shared_, sum_;
  DeviceArray<int32_t> routing_;
  DeviceArray<__half> gathered_, gated_;
  std::vector<ExpertMatrices> in_;
  ExpertMatrices out_;
  std::vector<PartsMemory> in_parts_;
  PartsMemory out_parts_;
};

inline Floats TestMixture::run(const std::vector<int>& chosen) const {
  MixturePass pass(*this, static_cast<int>(chosen.size()));
  pass.set_rows(chosen);
  pass.launch(nullptr);
  return pass.result();
}

}  // namespace forerun::cuda
