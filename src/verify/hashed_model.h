// A language model for tests: logits that are a hash of the text. And decoding with it,
// plain and by verification.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/hash.h"
#include "verify/verify.h"

namespace forerun {

inline constexpr AcceptRule kAllRules[] = {AcceptRule::kMatch, AcceptRule::kTargetOnly,
                                           AcceptRule::kLeviathan, AcceptRule::kRejection};

class HashedModel {
 public:
  // Logits lie in [-spread, spread).
  HashedModel(uint64_t seed, int n_vocab, float spread)
      : seed_(seed), n_vocab_(n_vocab), spread_(spread) {}

  int n_vocab() const { return n_vocab_; }

  std::vector<float> logits(std::span<const TokenId> text) const {
    StableHash hash;
    hash.add(seed_);
    for (TokenId token : text) hash.add(static_cast<uint64_t>(to_int(token)));
    std::vector<float> out(static_cast<size_t>(n_vocab_));
    for (size_t i = 0; i < out.size(); ++i) {
      StableHash cell = hash;
      cell.add(i);
      out[i] = spread_ * (static_cast<float>(cell.value() >> 40) * 0x1p-23f - 1.0f);
    }
    return out;
  }

 private:
  uint64_t seed_;
  int n_vocab_;
  float spread_;
};

using Text = std::vector<TokenId>;

inline Position end_of(const Text& text) {
  return Position{static_cast<int32_t>(text.size())};
}

// `text` and the tokens down to `node`.
inline Text text_behind(const Text& text, const DraftTree& tree, int32_t node) {
  Text path;
  for (; node != kRoot; node = tree[node].parent) path.push_back(tree[node].token);
  Text out = text;
  out.insert(out.end(), path.rbegin(), path.rend());
  return out;
}

// The model's final distribution behind the text.
inline Distribution distribution_behind(const HashedModel& model, const Sampler& sampler,
                                        const Text& text) {
  SamplerScratch scratch;
  return sampler.distribution(model.logits(text), sampler.state_after(text), scratch);
}

// `text` and n more tokens, one at a time.
inline Text plain_text(const HashedModel& model, const Sampler& sampler, Text text, int n) {
  SamplerScratch scratch;
  for (int i = 0; i < n; ++i) {
    text.push_back(sampler.sample(model.logits(text), sampler.state_after(text), end_of(text), scratch));
  }
  return text;
}

using Verifier = std::function<void(const VerifyInput&, SamplerScratch&, Verdict&)>;

inline Verifier verifier_of(AcceptRule rule) {
  return [rule](const VerifyInput& input, SamplerScratch& scratch, Verdict& verdict) {
    verify(input, rule, scratch, verdict);
  };
}

// Verifies a draft for what follows `text`.
inline Verdict verify_draft(const HashedModel& model, const Sampler& sampler, const Text& text,
                            const DraftTree& tree, const Verifier& verifier) {
  std::vector<float> logits;  // only those asked for last
  const auto logits_of = [&](int32_t node) {
    logits = model.logits(text_behind(text, tree, node));
    return std::span<const float>(logits);
  };
  const SamplerState state = sampler.state_after(text);
  SamplerScratch scratch;
  Verdict verdict;
  verifier({tree, logits_of, sampler, state, end_of(text)}, scratch, verdict);
  return verdict;
}

inline void append(const DraftTree& tree, const Verdict& verdict, Text& text) {
  for (int32_t node : verdict.path) text.push_back(tree[node].token);
  text.push_back(verdict.next);
}

}  // namespace forerun
