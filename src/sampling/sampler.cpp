#include "sampling/sampler.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <random>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "sampling/ieee_math.h"

namespace forerun {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Candidates that top-p without top-k looks at first: where a model has an opinion,
// they hold the share.
constexpr size_t kFirstSelection = 256;

// With the biases of a token next to each other.
SamplingOptions validated(SamplingOptions options, int n_vocab) {
  validate(options, n_vocab);
  std::ranges::stable_sort(options.logit_bias, {}, &std::pair<TokenId, float>::first);
  return options;
}

// Whether neither bias nor penalties raise a logit.
bool only_lowers(const SamplingOptions& options) {
  const bool raises_biased =
      std::ranges::any_of(options.logit_bias, [](const auto& biased) { return biased.second > 0; });
  const bool raises_seen =
      options.has_penalties() &&
      (options.repeat_penalty < 1 || options.presence_penalty < 0 || options.frequency_penalty < 0);
  return !raises_biased && !raises_seen;
}

uint64_t random_seed() {
  try {
    std::random_device device;
    return (uint64_t{device()} << 32 | device()) >> 11;
  } catch (const std::exception&) {
    fail(ErrorCode::kIo, "the operating system gives no random numbers: set a seed");
  }
}

[[noreturn]] void fail_empty() {
  fail(ErrorCode::kInvalidArgument,
       "no token can be chosen: every one is forbidden by logit_bias or the grammar, or has no valid "
       "logit");
}

size_t index_of(TokenId token) {
  return static_cast<size_t>(to_int(token));
}

double exp_of(float logit, float max) {
  return static_cast<double>(ieee::exp_nonpositive(logit - max));
}

// The whole vocabulary.
void normalise_all(std::span<const float> logits, float max, float temperature, Distribution& out) {
  out.tokens.resize(logits.size());
  out.logprobs.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) out.tokens[i] = TokenId{static_cast<int32_t>(i)};
  log_softmax(logits, max, temperature, out.logprobs);
}

void normalise(std::span<const ScoredToken> kept, float max, float temperature, Distribution& out) {
  out.tokens.resize(kept.size());
  out.logprobs.resize(kept.size());
  double total = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    out.tokens[i] = kept[i].token;
    out.logprobs[i] = (kept[i].logit - max) / temperature;
    total += exp_of(out.logprobs[i], 0);
  }
  const auto log_total = static_cast<float>(ieee::log(total));
  for (float& logprob : out.logprobs) logprob -= log_total;
}

// Removes candidates of probability 0: excluded logits, or a temperature near 0.
void drop_impossible(Distribution& d) {
  if (!has_excluded(d.logprobs)) return;
  size_t n = 0;
  for (size_t i = 0; i < d.size(); ++i) {
    d.tokens[n] = d.tokens[i];
    d.logprobs[n] = d.logprobs[i];
    n += d.logprobs[n] > -kInf ? 1 : 0;
  }
  d.tokens.resize(n);
  d.logprobs.resize(n);
}

}  // namespace

float Distribution::logprob(TokenId token) const {
  const auto it = std::find(tokens.begin(), tokens.end(), token);
  return it == tokens.end() ? -kInf : logprobs[static_cast<size_t>(it - tokens.begin())];
}

Sampler::Sampler(SamplingOptions options, int n_vocab)
    : options_(validated(std::move(options), n_vocab)),
      n_vocab_(n_vocab),
      seed_(options_.seed ? *options_.seed : random_seed()),
      noise_(seed_),
      log_min_p_(options_.min_p > 0 ? ieee::log(static_cast<double>(options_.min_p)) : -double{kInf}),
      draws_from_best_(decides_from_best()) {}

// How many tokens bias and penalties may move behind others at most.
size_t Sampler::n_lowered() const {
  const size_t n = options_.logit_bias.size();
  if (!options_.has_penalties()) return n;
  return options_.repeat_last_n < 0 ? kBestLogits : n + static_cast<size_t>(options_.repeat_last_n);
}

bool Sampler::decides_from_best() const {
  if (!only_lowers(options_)) return false;
  if (options_.temperature == 0) return true;
  if (has_top_k()) return static_cast<size_t>(options_.top_k) + n_lowered() <= kBestLogits;
  return options_.top_p >= 1 && options_.min_p > 0;
}

SamplerState Sampler::state_after(std::span<const TokenId> text) const {
  return options_.has_penalties() ? SamplerState(options_.repeat_last_n, text) : SamplerState();
}

// The logits after bias and penalties: the caller's own if neither changes any.
std::span<const float> Sampler::adjust(std::span<const float> logits, const SamplerState& state,
                                       SamplerScratch& scratch) const {
  CHECK(logits.size() == static_cast<size_t>(n_vocab_));
  if (!penalises(state) && options_.logit_bias.empty()) return logits;
  copy_clean(logits, scratch.logits);
  for (const auto& [token, bias] : options_.logit_bias) {
    float& logit = scratch.logits[index_of(token)];
    logit = clean(logit + bias);
  }
  if (penalises(state)) {
    count_seen(state, scratch);
    for (const TokenId token : scratch.seen) {
      float& logit = scratch.logits[index_of(token)];
      logit = penalised(logit, std::exchange(scratch.counts[index_of(token)], 0));
    }
  }
  return scratch.logits;
}

// Who reads the counts sets them back to 0.
void Sampler::count_seen(const SamplerState& state, SamplerScratch& scratch) const {
  const auto n_vocab = static_cast<size_t>(n_vocab_);
  auto& counts = scratch.counts;
  if (counts.size() < n_vocab) counts.resize(n_vocab, 0);
  scratch.seen.clear();
  state.for_each([&](TokenId token) {
    CHECK(index_of(token) < n_vocab);
    if (counts[index_of(token)]++ == 0) scratch.seen.push_back(token);
  });
}

float Sampler::penalised(float logit, int32_t count) const {
  const float repeated = logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
  return clean(repeated -
               (static_cast<float>(count) * options_.frequency_penalty + options_.presence_penalty));
}

float Sampler::min_p_threshold(float max) const {
  return static_cast<float>(static_cast<double>(max) + log_min_p_);
}

// How many of the best tokens top-p and min-p leave.
size_t Sampler::n_kept(std::span<const ScoredToken> sorted, const MassTarget& top_p) const {
  const float threshold = min_p_threshold(top_p.max);
  double sum = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i].logit < threshold) return i;
    sum += exp_of(sorted[i].logit, top_p.max);
    if (top_p.share < 1 && top_p.is_reached(sum)) return i + 1;
  }
  return sorted.size();
}

// Top-k, top-p and min-p. Each keeps a prefix of the tokens in falling order, so what
// remains is the shortest of the prefixes, in whatever order they are found; only
// top-p's probabilities refer to what top-k left.
void Sampler::truncate(std::span<const float> logits, float max, SamplerScratch& scratch) const {
  auto& kept = scratch.kept;
  if (has_top_k()) {
    select_top(logits, static_cast<size_t>(options_.top_k), scratch.selection, kept);
    truncate_top_k(max, kept);
    return;
  }
  if (options_.top_p >= 1) {
    select_at_least(logits, min_p_threshold(max), kept);
    return;
  }
  const MassTarget top_p{options_.top_p, max, sum_exp(logits, max, 1.0f)};
  select_top(logits, kFirstSelection, scratch.selection, kept);
  const size_t size = n_kept(kept, top_p);
  if (size < kept.size() || kept.size() < kFirstSelection) {
    kept.resize(size);
    return;
  }
  select_mass(logits, top_p, scratch.selection, kept);
  std::erase_if(kept, [&](const ScoredToken& k) { return k.logit < min_p_threshold(max); });
}

void Sampler::truncate_top_k(float max, std::vector<ScoredToken>& kept) const {
  double total = 0;
  for (const ScoredToken& candidate : kept) total += exp_of(candidate.logit, max);
  kept.resize(n_kept(kept, {options_.top_p, max, total}));
}

// As adjust() does it for all.
void Sampler::adjust_best(const SamplerState& state, SamplerScratch& scratch) const {
  auto& kept = scratch.kept;
  for (ScoredToken& candidate : kept) {
    auto bias = std::ranges::lower_bound(options_.logit_bias, candidate.token, {},
                                         &std::pair<TokenId, float>::first);
    for (; bias != options_.logit_bias.end() && bias->first == candidate.token; ++bias)
      candidate.logit = clean(candidate.logit + bias->second);
  }
  if (penalises(state)) {
    count_seen(state, scratch);
    for (ScoredToken& candidate : kept) {
      const int32_t count = scratch.counts[index_of(candidate.token)];
      if (count > 0) candidate.logit = penalised(candidate.logit, count);
    }
    for (const TokenId token : scratch.seen) scratch.counts[index_of(token)] = 0;
  }
  std::erase_if(kept, [](const ScoredToken& candidate) { return candidate.logit == -kInf; });
  std::sort(kept.begin(), kept.end());
}

// Tokens that are not among the best are behind the last of these, and nothing raises them: those that
// are not behind it after bias and penalties are the best of all, in the same order.
bool Sampler::keep_of_best(const LogitsView& logits, const SamplerState& state,
                           SamplerScratch& scratch) const {
  CHECK(logits.n_vocab() == static_cast<size_t>(n_vocab_));
  const auto best = logits.best();
  // An infinite logit is a finite one when it is adjusted, and may then tie with others.
  if (!draws_from_best_ || best.empty() || best.front().logit == kInf) return false;
  auto& kept = scratch.kept;
  kept.assign(best.begin(), best.end());
  const bool has_others = best.size() >= kBestLogits;
  if (penalises(state) || !options_.logit_bias.empty()) {
    adjust_best(state, scratch);
    if (has_others) kept.erase(std::upper_bound(kept.begin(), kept.end(), best.back()), kept.end());
    if (kept.empty()) return false;
  }
  const float max = kept.front().logit;
  if (options_.temperature == 0) {
    kept.resize(1);
  } else if (has_top_k()) {
    const auto k = static_cast<size_t>(options_.top_k);
    if (has_others && kept.size() < k) return false;
    kept.resize(std::min(k, kept.size()));
    truncate_top_k(max, kept);
  } else {
    const float threshold = min_p_threshold(max);
    if (has_others && best.back().logit >= threshold) return false;
    std::erase_if(kept, [&](const ScoredToken& candidate) { return candidate.logit < threshold; });
    std::ranges::sort(kept, {}, &ScoredToken::token);  // the order in which they are added up
  }
  return true;
}

const Distribution& Sampler::distribution(const LogitsView& logits, const SamplerState& state,
                                          SamplerScratch& scratch) const {
  if (state.constraint() == nullptr) return distribution_of(logits, state, scratch);
  const auto all = logits.all();
  scratch.allowed.assign(all.begin(), all.end());
  state.constraint()->mask(scratch.allowed);
  return distribution_of_all(scratch.allowed, state, scratch);
}

const Distribution& Sampler::distribution_of(const LogitsView& logits, const SamplerState& state,
                                             SamplerScratch& scratch) const {
  if (!keep_of_best(logits, state, scratch)) return distribution_of_all(logits.all(), state, scratch);
  Distribution& out = scratch.distribution;
  const auto& kept = scratch.kept;
  if (options_.temperature == 0) {
    out.tokens.assign(1, kept.front().token);
    out.logprobs.assign(1, 0.0f);
    return out;
  }
  const auto best = std::ranges::max_element(kept, {}, &ScoredToken::logit);
  normalise(kept, best->logit, options_.temperature, out);
  drop_impossible(out);
  return out;
}

const Distribution& Sampler::distribution_of_all(std::span<const float> logits,
                                                 const SamplerState& state,
                                                 SamplerScratch& scratch) const {
  std::span<const float> adjusted = adjust(logits, state, scratch);
  Distribution& out = scratch.distribution;
  if (options_.temperature == 0) {
    const auto best = argmax(adjusted);
    if (!best) fail_empty();
    out.tokens.assign(1, *best);
    out.logprobs.assign(1, 0.0f);
    return out;
  }
  float max = largest(adjusted);
  if (max == -kInf) fail_empty();
  if (max == kInf) {  // then `adjusted` is still the caller's: the copy is clean
    copy_clean(logits, scratch.logits);
    adjusted = scratch.logits;
    max = std::numeric_limits<float>::max();
  }
  if (has_top_k() || options_.top_p < 1 || options_.min_p > 0) {
    truncate(adjusted, max, scratch);
    normalise(scratch.kept, max, options_.temperature, out);
  } else {
    normalise_all(adjusted, max, options_.temperature, out);
  }
  drop_impossible(out);
  return out;
}

TokenId Sampler::draw(const Distribution& distribution, Position position) const {
  CHECK(distribution.size() > 0);
  if (distribution.size() == 1) return distribution.tokens.front();
  double best = -double{kInf};
  TokenId best_token = distribution.tokens.front();
  KeyedNoise::Block noise;
  for (size_t first = 0; first < distribution.size(); first += KeyedNoise::kBlock) {
    const size_t n = std::min(KeyedNoise::kBlock, distribution.size() - first);
    const auto tokens = std::span(distribution.tokens).subspan(first, n);
    const auto logprobs = std::span(distribution.logprobs).subspan(first, n);
    // Two logarithms per block bound its noise; few blocks can still hold the best.
    const uint64_t max_high = noise_.fill(position, tokens, noise);
    const double bound = KeyedNoise::gumbel(max_high << 32 | 0xFFFFFFFFu) + KeyedNoise::kGumbelSlack;
    if (static_cast<double>(largest(logprobs)) + bound < best) continue;
    for (size_t i = 0; i < n; ++i) {
      const auto logprob = static_cast<double>(logprobs[i]);
      if (logprob + bound < best) continue;
      const double score = logprob + KeyedNoise::gumbel(uint64_t{noise.high[i]} << 32 | noise.low[i]);
      if (score > best || (score == best && tokens[i] < best_token)) {
        best = score;
        best_token = tokens[i];
      }
    }
  }
  return best_token;
}

TokenId Sampler::sample(const LogitsView& logits, const SamplerState& state, Position position,
                        SamplerScratch& scratch) const {
  const TokenId token = draw(distribution_of(logits, state, scratch), position);
  if (state.constraint() == nullptr || state.constraint()->allows(token)) return token;
  return draw(distribution(logits, state, scratch), position);
}

}  // namespace forerun
