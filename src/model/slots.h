// The texts whose keys and values a cache holds, and the places that requests take in it.
//
// A slot is a sequence of the cache and the text whose keys and values it has. A request takes
// one, and when it ends the slot keeps its text, so that a later prompt which begins alike (the
// next turn of a conversation, the same instructions before another question) is read only
// from where it differs. Texts that begin alike share the cells of their beginning. Those that
// nobody runs are forgotten when cells are needed, the least recently used first.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "core/ids.h"
#include "model/executor.h"

namespace forerun {

struct Slot {
  SequenceId sequence;
  std::vector<TokenId> text = {};  // committed
  bool is_taken = false;
  int64_t last_used = 0;
};

class Slots {
 public:
  // Of `n_slots` that are taken at once at most, each with `n_context` tokens at most. The
  // executor's cache has n_context cells or more, and outlives this.
  Slots(Executor& executor, int n_slots, int n_context);
  ~Slots();  // its cells are free again
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  int n_slots() const { return n_slots_; }
  int n_context() const { return n_context_; }
  int n_taken() const { return n_taken_; }

  struct Wanted {
    int n_more = 0;         // cells, beside those of the prompt
    bool may_share = true;  // what there is of its beginning
  };
  // A slot whose text is as long a beginning of `prompt` as there is anywhere, but not all of
  // it: logits are wanted. There are cells for the rest of the prompt and what else is wanted then.
  // nullptr: all slots are taken, or those that are leave too few cells.
  Slot* acquire(std::span<const TokenId> prompt, const Wanted& wanted);
  Slot* acquire(std::span<const TokenId> prompt) { return acquire(prompt, Wanted()); }
  // The text is kept.
  void release(Slot& slot);
  // The text is forgotten.
  void drop(Slot& slot);

  // Forgets texts until so many cells are free. false: all of them are forgotten, and the cells
  // do not suffice.
  bool make_room(int n_cells);
  // Cells that texts of taken slots have.
  int n_cells_taken() const;

  // Forgets all texts. No slot is taken.
  void clear();

  // The text of the slot that was taken last, to and from a file. restore() does nothing
  // when it does not fit. Both throw Error.
  void save(const std::filesystem::path& path) const;
  void restore(const std::filesystem::path& path);

 private:
  struct Beginning {
    Slot* slot = nullptr;  // whose text begins like a prompt
    int n_tokens = 0;      // for so long
  };
  Beginning longest_beginning(std::span<const TokenId> prompt) const;
  // How many cells there would be beside those of taken slots and of this beginning.
  int n_cells_beside(const Beginning& beginning) const;
  int n_free() const { return executor_.cells().n_free(); }
  Slot& add(SequenceId sequence);
  void forget(const Slot& slot);
  Slot* least_recently_used() const;  // of those that are not taken
  const Slot* newest() const;

  Executor& executor_;
  int n_slots_;
  int n_context_;
  int n_taken_ = 0;
  int64_t n_acquired_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace forerun
