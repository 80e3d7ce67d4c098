// Places in the KV cache that requests take in turn.
//
// A slot is a sequence of the cache and the text whose keys and values it holds. It keeps
// them when its request ends, so that a later prompt which begins alike (the next turn of
// a conversation, the same instructions before another question) is read only from where
// it differs, whichever slot the text is in.
//
// Every slot may grow to the whole context; the cache has cells for all of them. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "core/ids.h"
#include "model/executor.h"

namespace forerun {

struct Slot {
  SequenceId sequence;
  std::vector<TokenId> text;  // committed
  bool is_taken = false;
  int64_t last_used = 0;
};

class Slots {
 public:
  // The executor's cache holds n_slots * n_context cells or more, and outlives this.
  Slots(Executor& executor, int n_slots, int n_context);
  ~Slots();  // its cells are free again
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  int n_context() const { return n_context_; }

  // A free slot, its text cut to as long a beginning of `prompt` as there is anywhere, but
  // not all of it. nullptr: all are taken.
  Slot* acquire(std::span<const TokenId> prompt);
  // The slot keeps its text.
  void release(Slot& slot);

  // Forgets the texts of all slots. None is taken.
  void clear();

  // The text of the slot that was taken last, to and from a file. restore() does nothing
  // when it does not fit. Both throw Error.
  void save(const std::filesystem::path& path) const;
  void restore(const std::filesystem::path& path);

 private:
  size_t newest() const;

  Executor& executor_;
  int n_context_;
  std::vector<Slot> slots_;  // never grows: requests keep pointers
  int64_t n_acquired_ = 0;
};

}  // namespace forerun
