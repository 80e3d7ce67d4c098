// How an answer is written, and what ends it.
#pragma once

#include <forerun/sampling_options.h>
#include <forerun/token.h>

#include <string>
#include <vector>

namespace forerun {

// What an answer must follow, in llama.cpp's GBNF.
struct Grammar {
  std::string text = {};  // with a rule "root"; empty: nothing
  // Only from where one of these ends: regular expressions that all of the answer so far matches, the
  // grammar holding from the first group on, or tokens.
  bool is_lazy = false;
  std::vector<std::string> trigger_patterns = {};
  std::vector<TokenId> trigger_tokens = {};
  std::vector<TokenId> prefix = {};  // that is part of what the grammar describes, and of the prompt
};

struct GenerationOptions {
  SamplingOptions sampling;
  int max_tokens = -1;               // -1: until the model ends the text or the context is full
  std::vector<std::string> stop;     // texts that end the answer; they are not part of it
  std::vector<TokenId> stop_tokens;  // the same for tokens
  bool ignore_eos = false;           // never let the model end the text
  Grammar grammar;
  std::vector<TokenId> visible_tokens;  // control tokens whose names are part of the answer's text
};

}  // namespace forerun
