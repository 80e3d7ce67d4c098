#include "support/plain_forward.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <string>

#include "core/check.h"

namespace forerun::test {
namespace {

using Vector = std::vector<float>;

float silu(float x) {
  return x / (1.0f + std::exp(-x));
}

// The tanh form.
float gelu(float x) {
  const double r = x;
  const double inner = std::sqrt(2.0 / std::numbers::pi) * (r + 0.044715 * r * r * r);
  return static_cast<float>(0.5 * r * (1.0 + std::tanh(inner)));
}

class PlainModel {
 public:
  explicit PlainModel(const Model& model) : model_(model), config_(model.config()) {}

  PlainResult run(std::span<const TokenId> tokens) {
    std::vector<Vector> rows;  // the residual stream
    for (const TokenId token : tokens) rows.push_back(embedding(token));
    PlainResult result;
    const auto keep = [&] {
      Vector& all = result.states.emplace_back();
      for (const Vector& row : rows) all.insert(all.end(), row.begin(), row.end());
    };
    for (int layer = 0; layer < config_.n_layers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      keep();
      const auto entered = rows;
      attention(layer, prefix, rows);
      keep();
      if (is_cohere()) {
        mlp(prefix, "attn_norm", entered, rows);
      } else {
        mlp(prefix, "ffn_norm", rows, rows);
      }
    }
    keep();
    for (const Vector& row : rows) {
      const Vector logits = head(row);
      result.logits.insert(result.logits.end(), logits.begin(), logits.end());
    }
    return result;
  }

 private:
  bool is_cohere() const {
    return config_.architecture == "command-r" || config_.architecture == "cohere2";
  }
  bool has(const std::string& name) const { return model_.file().find_tensor(name) != nullptr; }

  Vector tensor(const std::string& name) const {
    const GgufTensor* found = model_.file().find_tensor(name);
    CHECK(found != nullptr && found->type == GGML_TYPE_F32);
    Vector values(found->n_bytes / sizeof(float));
    std::memcpy(values.data(), found->data, found->n_bytes);
    return values;
  }

  Vector embedding(TokenId token) const {
    const auto n = static_cast<size_t>(config_.n_embd);
    const Vector all = tensor("token_embd.weight");
    Vector row(all.begin() + static_cast<ptrdiff_t>(n * static_cast<size_t>(to_int(token))),
               all.begin() + static_cast<ptrdiff_t>(n * static_cast<size_t>(to_int(token) + 1)));
    if (config_.architecture == "gemma3") {
      for (float& x : row) x *= std::sqrt(static_cast<float>(config_.n_embd));
    }
    return row;
  }

  // y = W x + b, for every row.
  std::vector<Vector> linear(const std::string& name, const std::string& bias_name,
                             const std::vector<Vector>& rows) const {
    const Vector weight = tensor(name);
    const Vector bias = has(bias_name) ? tensor(bias_name) : Vector();
    const size_t n_in = rows.front().size();
    const size_t n_out = weight.size() / n_in;
    std::vector<Vector> result;
    for (const Vector& x : rows) {
      Vector& y = result.emplace_back(n_out);
      for (size_t o = 0; o < n_out; ++o) {
        double sum = bias.empty() ? 0.0 : bias[o];
        for (size_t i = 0; i < n_in; ++i) {
          sum += static_cast<double>(weight[o * n_in + i]) * static_cast<double>(x[i]);
        }
        y[o] = static_cast<float>(sum);
      }
    }
    return result;
  }
  std::vector<Vector> linear(const std::string& name, const std::vector<Vector>& rows) const {
    return linear(name + ".weight", name + ".bias", rows);
  }

  // Over each run of weight.size() elements: the whole row, or head by head.
  void norm(std::span<float> x, const Vector& weight) const {
    for (size_t at = 0; at < x.size(); at += weight.size()) {
      if (config_.norm_kind == NormKind::kLayer) {
        double sum = 0;
        for (size_t i = 0; i < weight.size(); ++i) sum += x[at + i];
        for (size_t i = 0; i < weight.size(); ++i)
          x[at + i] -= static_cast<float>(sum / static_cast<double>(weight.size()));
      }
      double squares = 0;
      for (size_t i = 0; i < weight.size(); ++i) squares += static_cast<double>(x[at + i]) * x[at + i];
      const double mean = squares / static_cast<double>(weight.size());
      const double scale = 1.0 / std::sqrt(mean + static_cast<double>(config_.norm_eps));
      for (size_t i = 0; i < weight.size(); ++i) {
        x[at + i] = static_cast<float>(x[at + i] * scale * weight[i]);
      }
    }
  }
  // As they are where the model has no such norm.
  std::vector<Vector> normed(std::vector<Vector> rows, const std::string& name) const {
    if (!has(name + ".weight")) return rows;
    const Vector weight = tensor(name + ".weight");
    for (Vector& row : rows) norm(row, weight);
    if (!has(name + ".bias")) return rows;
    const Vector bias = tensor(name + ".bias");
    for (Vector& row : rows) {
      for (size_t i = 0; i < row.size(); ++i) row[i] += bias[i];
    }
    return rows;
  }

  // The angle by which pair `pair` of a head is turned at `position`.
  double angle(const RopeConfig& rope, size_t pair, int position) const {
    const double n_dims = rope.n_dims;
    double full = position * std::pow(static_cast<double>(rope.freq_base),
                                      -2.0 * static_cast<double>(pair) / n_dims);
    if (has("rope_freqs.weight")) full /= tensor("rope_freqs.weight")[pair];
    const double stretched = full * rope.freq_scale;
    if (rope.ext_factor == 0.0f) return stretched;
    // YaRN (arXiv 2309.00071, section 3.2): pairs that turn often in the original
    // context keep their speed, pairs that turn less than once are stretched.
    const auto pair_that_turns = [&](double turns) {
      return n_dims * std::log(rope.n_ctx_original / (turns * 2.0 * std::numbers::pi)) /
             (2.0 * std::log(static_cast<double>(rope.freq_base)));
    };
    const double first = std::max(0.0, std::floor(pair_that_turns(32.0)));
    const double last = std::min(n_dims - 1.0, std::ceil(pair_that_turns(1.0)));
    const double place = (static_cast<double>(pair) - first) / std::max(0.001, last - first);
    const double keep = 1.0 - std::clamp(place, 0.0, 1.0);
    return stretched * (1.0 - keep) + full * keep;
  }

  void rotate(std::span<float> heads, int layer, int position) const {
    if (config_.architecture == "cohere2" && layer % 4 == 3) return;
    const RopeConfig& rope = config_.rope_of(layer);
    const auto dim = static_cast<size_t>(config_.heads.dim);
    const auto half = static_cast<size_t>(rope.n_dims) / 2;
    const double magnitude =
        rope.ext_factor == 0.0f ? 1.0 : 1.0 + 0.1 * std::log(1.0 / static_cast<double>(rope.freq_scale));
    for (size_t pair = 0; pair < half; ++pair) {
      const double theta = angle(rope, pair, position);
      const auto cosine = static_cast<float>(std::cos(theta) * magnitude);
      const auto sine = static_cast<float>(std::sin(theta) * magnitude);
      for (size_t head = 0; head < heads.size(); head += dim) {
        const bool pairs = rope.layout == RopeLayout::kPairs;
        float& a = heads[head + (pairs ? 2 * pair : pair)];
        float& b = heads[head + (pairs ? 2 * pair + 1 : pair + half)];
        const float turned = a * cosine - b * sine;
        b = a * sine + b * cosine;
        a = turned;
      }
    }
  }

  struct Heads {
    std::vector<Vector> q, k, v;
  };
  Heads project(const std::string& prefix, const std::vector<Vector>& rows) const {
    if (!has(prefix + "attn_qkv.weight")) {
      return {linear(prefix + "attn_q", rows), linear(prefix + "attn_k", rows),
              linear(prefix + "attn_v", rows)};
    }
    Heads heads;
    const ptrdiff_t n_q = config_.heads.n_embd_q();
    const ptrdiff_t n_kv = config_.heads.n_embd_kv();
    for (const Vector& x : linear(prefix + "attn_qkv", rows)) {
      heads.q.emplace_back(x.begin(), x.begin() + n_q);
      heads.k.emplace_back(x.begin() + n_q, x.begin() + n_q + n_kv);
      heads.v.emplace_back(x.begin() + n_q + n_kv, x.end());
    }
    return heads;
  }

  // What head `head` of row `row` reads from the rows it sees.
  Vector look(const Heads& heads, int layer, size_t row, size_t head) const {
    const auto dim = static_cast<size_t>(config_.heads.dim);
    const size_t kv_head = head / static_cast<size_t>(config_.heads.n / config_.heads.n_kv);
    const auto window = static_cast<size_t>(config_.is_windowed(layer) ? config_.window : 0);
    const size_t first = window > 0 && row + 1 > window ? row + 1 - window : 0;
    std::vector<double> shares;
    double largest = -INFINITY;
    for (size_t at = first; at <= row; ++at) {
      double score = 0;
      for (size_t i = 0; i < dim; ++i) {
        score += static_cast<double>(heads.q[row][head * dim + i]) * heads.k[at][kv_head * dim + i];
      }
      shares.push_back(score / std::sqrt(static_cast<double>(dim)));
      largest = std::max(largest, shares.back());
    }
    double total = 0;
    for (double& share : shares) total += share = std::exp(share - largest);
    std::vector<double> sum(dim);
    for (size_t at = first; at <= row; ++at) {
      for (size_t i = 0; i < dim; ++i) sum[i] += shares[at - first] * heads.v[at][kv_head * dim + i];
    }
    Vector read(dim);
    for (size_t i = 0; i < dim; ++i) read[i] = static_cast<float>(sum[i] / total);
    return read;
  }

  void attention(int layer, const std::string& prefix, std::vector<Vector>& rows) const {
    Heads heads = project(prefix, normed(rows, prefix + "attn_norm"));
    const auto norm_heads = [&] {
      heads.q = normed(heads.q, prefix + "attn_q_norm");
      heads.k = normed(heads.k, prefix + "attn_k_norm");
    };
    const bool norms_rotated = config_.architecture == "hunyuan-dense";
    if (!norms_rotated) norm_heads();
    for (size_t row = 0; row < rows.size(); ++row) {
      rotate(heads.q[row], layer, static_cast<int>(row));
      rotate(heads.k[row], layer, static_cast<int>(row));
    }
    if (norms_rotated) norm_heads();
    std::vector<Vector> read(rows.size());
    for (size_t row = 0; row < rows.size(); ++row) {
      for (size_t head = 0; head < static_cast<size_t>(config_.heads.n); ++head) {
        const Vector part = look(heads, layer, row, head);
        read[row].insert(read[row].end(), part.begin(), part.end());
      }
    }
    add(rows, linear(prefix + "attn_output", read), prefix + "post_attention_norm");
  }

  float activation(float x) const {
    const std::string& name = config_.architecture;
    if (name == "arcee" || name == "nemotron") return x > 0.0f ? x * x : 0.0f;
    return name == "gemma3" || name == "starcoder2" ? gelu(x) : silu(x);
  }

  void mlp(const std::string& prefix, const std::string& norm, const std::vector<Vector>& read,
           std::vector<Vector>& rows) const {
    const auto x = normed(read, prefix + norm);
    std::vector<Vector> up = linear(prefix + "ffn_up", x);
    const bool has_gate = has(prefix + "ffn_gate.weight");
    const std::vector<Vector> gate = has_gate ? linear(prefix + "ffn_gate", x) : up;
    for (size_t row = 0; row < read.size(); ++row) {
      for (size_t i = 0; i < gate[row].size(); ++i) {
        const float opened = activation(gate[row][i]);
        up[row][i] = has_gate ? opened * up[row][i] : opened;
      }
    }
    add(rows, linear(prefix + "ffn_down", up), prefix + "post_ffw_norm");
  }

  void add(std::vector<Vector>& rows, std::vector<Vector> out, const std::string& post_norm) const {
    out = normed(std::move(out), post_norm);
    for (size_t row = 0; row < rows.size(); ++row) {
      for (size_t i = 0; i < rows[row].size(); ++i) rows[row][i] += out[row][i];
    }
  }

  Vector head(const Vector& row) const {
    const auto x = normed({row}, "output_norm");
    const std::string weight = has("output.weight") ? "output.weight" : "token_embd.weight";
    Vector logits = linear(weight, "output.bias", x).front();
    if (is_cohere()) {
      const std::string key = config_.architecture + ".logit_scale";
      const double scale = model_.file().metadata().get_float(key).value();
      for (float& logit : logits) logit = static_cast<float>(logit * scale);
    }
    if (const float cap = config_.logit_softcap; cap > 0) {
      for (float& logit : logits) logit = cap * std::tanh(logit / cap);
    }
    return logits;
  }

  const Model& model_;
  const ModelConfig& config_;
};

}  // namespace

PlainResult plain_forward(const Model& model, std::span<const TokenId> tokens) {
  return PlainModel(model).run(tokens);
}

}  // namespace forerun::test
