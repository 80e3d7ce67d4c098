// How the answer to a request goes to its client: one class for each protocol.
//
// Everything happens on the strand of the client's connection.
#pragma once

#include <forerun/generation.h>
#include <forerun/request.h>

#include <optional>
#include <string>
#include <vector>

#include "serve/answer/answer_error.h"

namespace forerun {

// A Chunk that outlives the call it came with.
struct AnswerPart {
  explicit AnswerPart(const Chunk& chunk)
      : text(chunk.text),
        tokens(chunk.tokens.begin(), chunk.tokens.end()),
        ends(chunk.ends.begin(), chunk.ends.end()),
        origins(chunk.origins.begin(), chunk.origins.end()),
        logprobs(chunk.logprobs.begin(), chunk.logprobs.end()),
        timings(chunk.timings),
        speculation(chunk.speculation) {}

  // Of each token.
  std::vector<std::string_view> texts() const {
    std::vector<std::string_view> result;
    size_t begin = 0;
    for (const size_t end : ends) {
      result.push_back(std::string_view(text).substr(begin, end - begin));
      begin = end;
    }
    return result;
  }

  std::string text;
  std::vector<TokenId> tokens;
  std::vector<size_t> ends;  // per token: where its text ends in `text`
  std::vector<std::optional<DraftSource>> origins;
  std::vector<TokenLogprobs> logprobs;
  Timings timings;  // until now, as this
  SpeculationStatistics speculation;
};

class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  // Whether parts are wanted; else there is only the whole of each choice.
  virtual bool streams() const = 0;
  // Whether it is to be told how far prompts are read, before any part.
  virtual bool wants_progress() const { return false; }
  virtual void progress(int /*choice*/, const PromptProgress& /*progress*/) {}
  virtual void part(int choice, const AnswerPart& part) = 0;
  virtual void finished(int choice, const Generation& generation) = 0;
  // All choices are finished: the last that is called.
  virtual void all_finished() = 0;
  // Instead of that.
  virtual void failed(const AnswerError& error) = 0;
};

}  // namespace forerun
