// Answers prompts, one after the other, with one model.
//
// Keeps the keys and values of the last text, so that a prompt which continues it
// (the next turn of a conversation) is read only from where it differs.
//
// Not thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/generation.h"
#include "model/executor.h"
#include "sampling/sampler.h"
#include "text/vocabulary.h"

namespace forerun {

class Generator {
 public:
  // Both must outlive it.
  Generator(Executor& executor, const Vocabulary& vocabulary);

  struct Callbacks {
    // Gets text as it is made, in whole UTF-8 characters. May be empty.
    std::function<void(std::string_view)> on_text;
    // Asked before every pass; true ends the generation. May be empty.
    std::function<bool()> is_cancelled;
  };

  // Throws Error: an empty prompt, one that does not fit into the context, options
  // that make no sense. The next call is not affected.
  Generation generate(std::span<const TokenId> prompt, const GenerationOptions& options,
                      const Callbacks& callbacks);

  // Keeps the last text's keys and values in a file, and takes them from it again: a
  // prompt that begins like that text is then read only from where it differs.
  // restore() does nothing when the text does not fit. Both throw Error.
  void save(const std::filesystem::path& path) const;
  void restore(const std::filesystem::path& path);

 private:
  // Makes the sequence hold a beginning of `prompt`, as much of it as the last text
  // shares; returns how many tokens that is.
  int reuse(std::span<const TokenId> prompt);
  // Reads a prompt's tokens, for which there is room; the logits behind the last.
  // nullopt: cancelled.
  std::optional<std::span<const float>> read_prompt(std::span<const TokenId> tokens,
                                                    const std::function<bool()>& is_cancelled);
  // Reads one token. nullopt: the context is full.
  std::optional<std::span<const float>> step(TokenId token);

  Executor& executor_;
  const Vocabulary& vocabulary_;
  SequenceId sequence_;
  std::vector<TokenId> committed_;
  SamplerScratch sampler_scratch_;
  LogprobScratch logprob_scratch_;
};

}  // namespace forerun
