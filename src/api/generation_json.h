// Parts of answers as JSON, with the names that clients of llama-server know (docs/interface.md).
#pragma once

#include <forerun/generation.h>
#include <forerun/tokenizer.h>

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

namespace forerun {

std::vector<int32_t> token_numbers(std::span<const TokenId> tokens);

// llama-server's `timings`, and what became of drafts: `draft_n`, `draft_n_accepted`.
nlohmann::ordered_json timings_json(const Timings& timings, const SpeculationStatistics& speculation);

// For each token itself and the most probable ones in its place: number, text, bytes, logarithm of its
// probability.
nlohmann::ordered_json logprobs_json(std::span<const TokenLogprobs> logprobs,
                                     const Tokenizer& tokenizer);
// The same with probabilities of draws: `prob`, `top_probs`.
nlohmann::ordered_json draws_json(std::span<const TokenLogprobs> logprobs, const Tokenizer& tokenizer);

}  // namespace forerun
