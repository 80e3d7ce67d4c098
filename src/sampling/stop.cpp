#include "sampling/stop.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace forerun {

void validate_stops(const std::vector<std::string>& strings) {
  for (const std::string& s : strings) {
    if (s.empty()) fail(ErrorCode::kInvalidArgument, "a stop string must not be empty");
  }
}

StopMatcher::Pattern::Pattern(std::string s) : text(std::move(s)), shorter(text.size() + 1, 0) {
  // The pattern is matched against itself, one byte behind.
  for (size_t n = 1; n < text.size(); ++n) {
    advance(text[n]);
    shorter[n + 1] = n_matched;
  }
  n_matched = 0;
}

void StopMatcher::Pattern::advance(char c) {
  while (n_matched > 0 && (n_matched == text.size() || text[n_matched] != c))
    n_matched = shorter[n_matched];
  if (text[n_matched] == c) ++n_matched;
}

StopMatcher::StopMatcher(const std::vector<std::string>& strings, std::vector<TokenId> tokens)
    : tokens_(std::move(tokens)) {
  validate_stops(strings);
  for (const std::string& s : strings) patterns_.emplace_back(s);
}

bool StopMatcher::is_stop(TokenId token) const {
  return std::find(tokens_.begin(), tokens_.end(), token) != tokens_.end();
}

std::string StopMatcher::append(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  size_t n_read = held_.size() - piece.size();  // bytes of held_ that the patterns have seen
  size_t n_held = 0;
  for (char c : piece) {
    ++n_read;
    n_held = 0;
    size_t n_stop = 0;
    for (Pattern& pattern : patterns_) {
      pattern.advance(c);
      n_held = std::max(n_held, pattern.n_matched);
      if (pattern.n_matched == pattern.text.size()) n_stop = std::max(n_stop, pattern.n_matched);
    }
    if (n_stop > 0) {
      stopped_ = true;
      stopping_string_ = held_.substr(n_read - n_stop, n_stop);
      held_.resize(n_read - n_stop);
      return std::exchange(held_, {});
    }
  }
  if (piece.empty()) return {};
  std::string shown = held_.substr(0, held_.size() - n_held);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopMatcher::flush() {
  for (Pattern& pattern : patterns_) pattern.n_matched = 0;
  return std::exchange(held_, {});
}

}  // namespace forerun
