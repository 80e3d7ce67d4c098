#include "retrieval/input_trie.h"

#include <algorithm>

#include "core/check.h"

namespace forerun {
namespace {

// A handle says how many tokens of its window are left behind it, and either a node or a
// place of the text inside a folded window.
constexpr uint64_t kAtPlace = uint64_t{1} << 63;
constexpr uint64_t kNowhere = ~uint64_t{0};

uint64_t node_handle(uint32_t node, uint32_t left) {
  return uint64_t{left} << 32 | node;
}
uint64_t place_handle(uint32_t place, uint32_t left) {
  return kAtPlace | uint64_t{left} << 32 | place;
}
uint32_t left_of(uint64_t handle) {
  return static_cast<uint32_t>(handle >> 32) & 0xFFFF;
}

}  // namespace

InputTrie::InputTrie(const InputTrieOptions& options) : options_(options), nodes_(1) {
  CHECK(options.window >= 1 && options.window < 0xFFFF && options.max_match >= 1 &&
        options.prompt_tail >= 0);
}

size_t InputTrie::n_bytes() const {
  return text_.capacity() * sizeof(TokenId) + nodes_.capacity() * sizeof(Node) + children_.n_bytes();
}

void InputTrie::add_child(const Window& window, bool fold) {
  const uint32_t at = window.start + window.depth;
  const auto child = static_cast<uint32_t>(nodes_.size());
  CHECK(child < kFolded && at < kFolded);
  nodes_.push_back({text_[at], 1, nodes_[window.node].below, fold ? kFolded | at : 0});
  nodes_[window.node].below = child;
  children_.set(static_cast<int32_t>(window.node), text_[at], static_cast<int32_t>(child));
}

// Gives a folded node at `depth` the child that its window has, unless that lies at
// `limit`, where the window ends so far.
void InputTrie::unfold(uint32_t node, uint32_t depth, uint32_t limit) {
  const uint32_t next = place(node) + 1;
  nodes_[node].below = 0;
  if (depth < static_cast<uint32_t>(options_.window) && next < limit) {
    add_child({next - depth, node, depth}, true);
  }
}

// Takes the window's next token into the trie. With `fold`, the rest of the window follows
// by itself where it is alone.
void InputTrie::extend(Window& window, bool fold) {
  const uint32_t child = find_child(window.node, text_[window.start + window.depth]);
  if (child == 0) {
    add_child(window, fold);
    window.node = static_cast<uint32_t>(nodes_.size() - 1);
  } else {
    if (folded(child)) {
      // Open windows behind this one have not got the newest token yet.
      const uint32_t start = place(child) - window.depth;
      const bool behind = options_.rule == WindowRule::kGrowing && start > window.start;
      unfold(child, window.depth + 1, behind ? size() - 1 : size());
    }
    ++nodes_[child].count;
    window.node = child;
  }
  ++window.depth;
}

// Takes the newest token of the text into an open window.
void InputTrie::grow(Window& window) {
  const uint32_t depth = size() - 1 - window.start;
  // Where it was folded it may have been unfolded meanwhile.
  while (window.depth < depth && !folded(window.node)) {
    window.node = find_child(window.node, text_[window.start + window.depth]);
    ++window.depth;
  }
  if (!folded(window.node)) extend(window, true);
}

void InputTrie::append(std::span<const TokenId> tokens) {
  if (options_.rule == WindowRule::kComplete) {
    text_.insert(text_.end(), tokens.begin(), tokens.end());
    insert_complete_windows();
    return;
  }
  for (const TokenId token : tokens) {
    text_.push_back(token);
    if (!open_.empty() && size() - open_.front().start > static_cast<uint32_t>(options_.window)) {
      open_.erase(open_.begin());
    }
    open_.push_back({size() - 1});
    for (Window& window : open_) grow(window);
  }
}

void InputTrie::insert_complete_windows() {
  const auto length = static_cast<uint32_t>(options_.window);
  for (; next_start_ + length <= size(); ++next_start_) {
    Window window{next_start_};
    do {
      extend(window, true);
    } while (window.depth < length && !folded(window.node));
  }
}

void InputTrie::put(std::span<const TokenId> prompt) {
  close_windows();
  const uint32_t begin = size();
  text_.insert(text_.end(), prompt.begin(), prompt.end());
  next_start_ = begin;
  insert_complete_windows();
  if (options_.rule == WindowRule::kGrowing) {
    for (uint32_t start = next_start_; start < size(); ++start) {
      Window window{start};
      while (start + window.depth < size() && !folded(window.node)) extend(window, true);
      open_.push_back(window);
    }
  } else {
    // Windows that the prompt's end cuts short.
    const uint32_t tail = std::min(static_cast<uint32_t>(options_.prompt_tail), size() - begin);
    for (; next_start_ < size() - tail; ++next_start_) {
      Window window{next_start_};
      while (window.start + window.depth < size()) extend(window, false);
    }
  }
}

// Open windows end here: their folded parts must not run into what comes next.
void InputTrie::close_windows() {
  for (Window& window : open_) {
    while (true) {
      if (folded(window.node)) unfold(window.node, window.depth, size());
      if (window.start + window.depth == size()) break;
      window.node = find_child(window.node, text_[window.start + window.depth]);
      ++window.depth;
    }
  }
  open_.clear();
}

// The handle of where the root leads with these tokens, or kNowhere.
uint64_t InputTrie::walk(std::span<const TokenId> tokens) const {
  if (static_cast<int>(tokens.size()) > options_.window) return kNowhere;
  const auto left = static_cast<uint32_t>(options_.window - static_cast<int>(tokens.size()));
  uint32_t node = 0;
  for (size_t depth = 0; depth < tokens.size(); ++depth) {
    node = find_child(node, tokens[depth]);
    if (node == 0) return kNowhere;
    if (!folded(node)) continue;
    const auto rest = tokens.subspan(depth + 1);
    if (rest.empty()) break;
    const uint32_t next = place(node) + 1;
    if (next + rest.size() > size() || !std::equal(rest.begin(), rest.end(), text_.begin() + next)) {
      return kNowhere;
    }
    return place_handle(next + static_cast<uint32_t>(rest.size()) - 1, left);
  }
  return node_handle(node, left);
}

void InputTrie::find(std::span<const TokenId> query, std::vector<Match>& out) const {
  const size_t longest = std::min(query.size(), static_cast<size_t>(options_.max_match));
  for (size_t length = longest; length > 0; --length) {
    const uint64_t handle = walk(query.last(length));
    if (handle != kNowhere) out.push_back({handle, static_cast<int>(length)});
  }
}

void InputTrie::children(uint64_t handle, std::vector<Candidate>& out) const {
  const uint32_t left = left_of(handle);
  if (left == 0) return;
  const auto low = static_cast<uint32_t>(handle);
  const bool at_place = (handle & kAtPlace) != 0;
  if (at_place || folded(low)) {
    const uint32_t next = (at_place ? low : place(low)) + 1;
    if (next < size()) out.push_back({text_[next], 1.0f, place_handle(next, left - 1), 0, 1});
    return;
  }
  const size_t n_before = out.size();
  uint32_t total = 0;
  for (uint32_t child = nodes_[low].below; child != 0; child = nodes_[child].next_sibling) {
    out.push_back({nodes_[child].token, static_cast<float>(nodes_[child].count),
                   node_handle(child, left - 1), 0, static_cast<int32_t>(nodes_[child].count)});
    total += nodes_[child].count;
  }
  if (options_.rule == WindowRule::kComplete) total = nodes_[low].count;
  for (size_t i = n_before; i < out.size(); ++i) out[i].share /= static_cast<float>(total);
}

}  // namespace forerun
