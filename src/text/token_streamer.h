// Tokens to text, one at a time, for printing an answer while it is made.
#pragma once

#include <span>
#include <string>

#include "text/utf8.h"
#include "text/vocabulary.h"

namespace forerun {

// Each call returns the text that the token completes, always valid UTF-8; the
// texts together are Vocabulary::detokenize() of all tokens, with U+FFFD where
// that is not UTF-8.
//
// Refers to the vocabulary. Not thread-safe: one per stream.
class TokenStreamer {
 public:
  struct Options {
    ControlTokens control = ControlTokens::kHidden;
    // The tokens begin a text, whose first may carry a space that is not part of
    // it. False when they continue one: an answer after its prompt.
    bool at_text_start = true;
  };

  explicit TokenStreamer(const Vocabulary& vocabulary) : TokenStreamer(vocabulary, Options{}) {}
  TokenStreamer(const Vocabulary& vocabulary, Options options);

  std::string push(TokenId token) { return push(token, control_); }
  // Whatever is usual, with or without this control token's name.
  std::string push(TokenId token, ControlTokens control);

  // Ends the stream: what an unfinished character becomes.
  std::string flush() { return utf8_.flush(); }

 private:
  const Vocabulary* vocabulary_;
  ControlTokens control_;
  bool drop_space_;  // of the next token that is text
  Utf8Stream utf8_;
};

}  // namespace forerun
