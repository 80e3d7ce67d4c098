// UTF-8: is this text valid, and turning a stream of bytes into whole characters.
//
// Valid means what Unicode says: no overlong forms, no surrogates, nothing above
// U+10FFFF. A NUL byte is an ordinary character.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace forerun {

// Offset of the first byte that does not belong to a valid character; nullopt if
// all do. A character cut off at the end counts as invalid, at its first byte.
std::optional<size_t> first_invalid_byte(std::string_view text);

bool is_valid_utf8(std::string_view text);

// Makes text of bytes that arrive in pieces cut anywhere, as those of tokens are.
//
// What comes out is always valid UTF-8. A character is held back until it is
// complete; bytes that can no longer become one turn into U+FFFD at once, one per
// maximal invalid prefix (the practice Unicode recommends), so nothing is held for
// ever and the result does not depend on how the bytes were cut.
//
// Not thread-safe: one per stream.
class Utf8Stream {
 public:
  // The text that `bytes` completes; may be empty.
  std::string push(std::string_view bytes);

  // Ends the stream: U+FFFD for a character that was not completed, else empty.
  // The stream can be used again afterwards.
  std::string flush();

  // Number of bytes held back, at most 3.
  size_t n_pending() const { return pending_.size(); }

 private:
  std::string pending_;  // a proper prefix of some valid character
};

}  // namespace forerun
