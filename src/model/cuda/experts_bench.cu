// Times mixtures of experts: microseconds of all that lies between the norm and the states behind it,
// and GB/s of the packed weights of those experts that rows chose, at random. Usage: experts_bench
// [type...]   (names as ggml has them: f16, q8_0, q4_K, ...)
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "model/cuda/bench_timing.h"
#include "model/cuda/device_array.h"
#include "model/cuda/experts.h"

namespace forerun::cuda {
namespace {

struct Mixture {
  const char* name;
  int n_embd, n_ff, n_experts, n_used;
};
constexpr Mixture kMixtures[] = {{"128 of 768, 8 used", 2048, 768, 128, 8},
                                 {"8 of 14336, 2 used", 4096, 14336, 8, 2},
                                 {"64 of 1024, 8 used", 2048, 1024, 64, 8},
                                 {"40 of 512, 8 used", 1536, 512, 40, 8}};
constexpr int kRows[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
constexpr ggml_type kTypes[] = {GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_MXFP4};
constexpr int kCalls = 20;
constexpr int kLayers = 4;  // with weights of their own, so that no cache has them

// Halves that are neither infinite nor NaN.
template <typename T>
void fill_randomly(const DeviceArray<T>& to, size_t n) {
  constexpr size_t kPiece = size_t{1} << 24;
  std::mt19937 random(1);
  std::vector<uint32_t> bits(kPiece / 4);
  for (uint32_t& b : bits) b = random() & 0xbfffbfffu;
  for (size_t at = 0; at < n * sizeof(T); at += kPiece) {
    check(cudaMemcpy(reinterpret_cast<std::byte*>(to.get()) + at, bits.data(),
                     std::min(kPiece, n * sizeof(T) - at), cudaMemcpyHostToDevice),
          "fill its memory");
  }
}

// A row's scores for every call and row, and how many experts the rows of a call touch on average.
std::vector<float> random_scores(const Mixture& mixture, int n_rows, double& n_touched) {
  std::mt19937 random(2);
  std::vector<float> scores;
  size_t n_all = 0;
  for (int call = 0; call < kCalls; ++call) {
    std::set<int> touched;
    for (int row = 0; row < n_rows; ++row) {
      std::vector<std::pair<float, int>> of_row;
      for (int expert = 0; expert < mixture.n_experts; ++expert) {
        of_row.emplace_back(static_cast<float>(random()) * 0x1p-30f, expert);
        scores.push_back(of_row.back().first);
      }
      std::partial_sort(of_row.begin(), of_row.begin() + mixture.n_used, of_row.end(), std::greater<>());
      for (int i = 0; i < mixture.n_used; ++i) touched.insert(of_row[static_cast<size_t>(i)].second);
    }
    n_all += touched.size();
  }
  n_touched = static_cast<double>(n_all) / kCalls;
  return scores;
}

// One after the other: gates and ups, downs, of every expert and layer.
struct Weights {
  Matrix in, out;
  size_t in_bytes, out_bytes;  // of a layer
  DeviceArray<std::byte> data;

  Weights(const Mixture& m, ggml_type type)
      : in(matrix_of(*format_of(type), m.n_embd, m.n_ff)),
        out(matrix_of(*format_of(type), m.n_ff, m.n_embd)),
        in_bytes(2 * in.n_bytes() * static_cast<size_t>(m.n_experts)),
        out_bytes(out.n_bytes() * static_cast<size_t>(m.n_experts)),
        data(kLayers * (in_bytes + out_bytes)) {
    fill_randomly(data, kLayers * (in_bytes + out_bytes));
  }
  const std::byte* layer(int i) const {
    return data.get() + static_cast<size_t>(i % kLayers) * (in_bytes + out_bytes);
  }
};

void bench(const Mixture& m, const Weights& weights, int n_rows) {
  const ExpertsShape shape{.n_rows = n_rows, .n_used = m.n_used, .n_experts = m.n_experts};
  ExpertMatrices in{.one = weights.in, .n = 2, .n_used = m.n_used};
  ExpertMatrices out{.one = weights.out, .n = 1, .n_used = m.n_used};
  const int64_t n_in = padded_inputs(*weights.in.format, m.n_embd),
                n_mid = padded_inputs(*weights.out.format, m.n_ff);
  double n_touched = 0;
  const DeviceArray<float> scores(random_scores(m, n_rows, n_touched));
  const auto n_states = static_cast<size_t>(n_rows) * static_cast<size_t>(m.n_embd);
  const DeviceArray<float> states(n_states), sum(n_states);
  const auto n_x = static_cast<size_t>(operand_halves(n_rows, n_in));
  const DeviceArray<__half> x(n_x);
  fill_randomly(x, n_x);
  const DeviceArray<__half> gathered(static_cast<size_t>(item_halves(shape, n_in))),
      mid(static_cast<size_t>(item_halves(shape, n_mid)));
  const DeviceArray<int32_t> numbers(static_cast<size_t>(routing_numbers(shape)));
  const DeviceArray<float> in_parts(static_cast<size_t>(2 * in.matrix_floats(shape))),
      out_parts(static_cast<size_t>(out.matrix_floats(shape)));
  const Routing routing = routing_at(shape, numbers.get());
  const auto segment = [](const ExpertMatrices& matrices, const ExpertsShape& of, int which,
                          const float* parts, int n) {
    return Segment{.parts = expert_parts(matrices, of, which, parts), .first = 0, .n = n};
  };
  const double us = microseconds(kCalls, [&](int call, cudaStream_t stream) {
    const std::byte* layer = weights.layer(call);
    in.data = {layer, layer + weights.in_bytes / 2};
    out.data = {layer + weights.in_bytes};
    route(
        {.shape = shape,
         .scores = scores.get() + static_cast<size_t>(call * n_rows) * static_cast<size_t>(m.n_experts),
         .n_scores = m.n_experts,
         .preference = nullptr,
         .gating = ExpertGating::kSoftmax,
         .normalises = true,
         .scale = 1.0f,
         .routing = routing},
        stream);
    Operand of_in{.data = x.get(), .padded_rows = padded(n_rows), .n_inputs = n_in};
    if (shape.is_gathered()) {
      const Operand to{.data = gathered.get(), .padded_rows = shape.width(), .n_inputs = n_in};
      gather(shape, routing, of_in, to, stream);
      of_in = to;
    }
    multiply_experts(in, shape, routing, {.x = of_in, .is_of_items = shape.is_gathered()},
                     in_parts.get(), stream);
    const Operand of_mid{.data = mid.get(), .padded_rows = shape.width(), .n_inputs = n_mid};
    gated(Gate::kSilu, segment(in, shape, 0, in_parts.get(), m.n_ff),
          segment(in, shape, 1, in_parts.get(), m.n_ff), {.n_rows = shape.n_routes(), .n = m.n_ff},
          routing.places, of_mid, stream);
    multiply_experts(out, shape, routing, {.x = of_mid, .is_of_items = true}, out_parts.get(), stream);
    combine({.states = states.get(),
             .made = segment(out, shape, 0, out_parts.get(), m.n_embd),
             .shares = routing.shares,
             .n_used = m.n_used,
             .shared = {},
             .shared_logits = nullptr,
             .shared_stride = 0,
             .scale = 1.0f,
             .shape = {.n_rows = n_rows, .n = m.n_embd},
             .sum = sum.get()},
            stream);
  });
  const double n_bytes =
      n_touched / m.n_experts * static_cast<double>(weights.in_bytes + weights.out_bytes);
  std::printf("%8.1f (%4.0f)", us, n_bytes / us * 1e-3);
  std::fflush(stdout);
}

}  // namespace
}  // namespace forerun::cuda

int main(int n_args, char** args) {
  using namespace forerun::cuda;
  if (!has_device()) {
    std::printf("no CUDA device\n");
    return 0;
  }
  for (const ggml_type type : kTypes) {
    const auto is_type = [&](const char* name) { return std::strcmp(name, ggml_type_name(type)) == 0; };
    if (n_args > 1 && !std::any_of(args + 1, args + n_args, is_type)) continue;
    std::printf("\n%s: us (GB/s)\n%-20s", ggml_type_name(type), "rows");
    for (const int n_rows : kRows) std::printf("%15d", n_rows);
    for (const Mixture& mixture : kMixtures) {
      const Weights weights(mixture, type);
      std::printf("\n%-20s", mixture.name);
      for (const int n_rows : kRows) bench(mixture, weights, n_rows);
    }
    std::printf("\n");
  }
}
