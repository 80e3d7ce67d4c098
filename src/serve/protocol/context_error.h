// A prompt that does not fit into the context, with the numbers that clients are told.
#pragma once

#include <forerun/error.h>

#include <string>

namespace forerun {

class ContextError : public Error {
 public:
  ContextError(int n_prompt, int n_context)
      : Error(ErrorCode::kContextFull,
              "the prompt has " + std::to_string(n_prompt) +
                  " tokens and exceeds the available context size of " + std::to_string(n_context) +
                  ": send a shorter one, or start the server with a larger context (-c)"),
        n_prompt_(n_prompt),
        n_context_(n_context) {}
  int n_prompt() const { return n_prompt_; }
  int n_context() const { return n_context_; }

 private:
  int n_prompt_;
  int n_context_;
};

}  // namespace forerun
