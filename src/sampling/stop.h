// Ends a text at stop strings and stop tokens while it streams.
//
// Text is held back only as long as it could still become a stop string: what is held
// is always the longest end of the text that is a beginning of some stop string. The
// text stops where the first stop string is complete and is cut before it; if several
// are complete at the same byte, before the longest. That rule looks at bytes, not at
// how the text was cut into pieces, so speculation (many tokens at once) and plain
// decoding stop at the same place.
//
// Works on bytes: fed whole UTF-8 characters, with stop strings of valid UTF-8, it
// emits whole characters. A copyable value; not thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"

namespace forerun {

// Throws Error{kInvalidArgument} for an empty stop string.
void validate_stops(const std::vector<std::string>& strings);

class StopMatcher {
 public:
  // Throws as validate_stops().
  explicit StopMatcher(const std::vector<std::string>& strings, std::vector<TokenId> tokens = {});

  // Whether this token ends the text. It is then not part of it.
  bool is_stop(TokenId token) const;

  // The text grew by `piece`: returns what can be shown of it and of what was held
  // back. Returns nothing any more once stopped.
  std::string append(std::string_view piece);

  // The text ended for another reason: returns what was held back.
  std::string flush();

  // Whether a stop string ended the text, and which.
  bool stopped() const { return stopped_; }
  const std::string& stopping_string() const { return stopping_string_; }

 private:
  // Finds one string by the algorithm of Knuth, Morris and Pratt (SIAM J. Comput. 6,
  // 1977): n_matched is the length of its longest beginning that the text ends with.
  struct Pattern {
    explicit Pattern(std::string s);
    void advance(char c);

    std::string text;
    std::vector<size_t> shorter;  // [n]: the next shorter candidate after n bytes matched
    size_t n_matched = 0;
  };

  std::vector<Pattern> patterns_;
  std::vector<TokenId> tokens_;
  std::string held_;
  bool stopped_ = false;
  std::string stopping_string_;
};

}  // namespace forerun
