// Which of libllama's sequences has which text, and how to get from there to what a pass needs.
//
// libllama numbers sequences and lets them share the beginnings of their texts; a token of a pass may be
// of several. Ours are lists of cells (kv_cells.h), which other parts of forerun commit, roll back, fork
// and remove without saying so here. So each token that libllama computed is known by its cell and by
// the number of the write to it, and before a pass every sequence of libllama's that takes part is
// brought to the text it needs, from whichever has most of that.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"

namespace forerun {

// Memory of libllama's sequences, as llama.h has it.
class SequenceMemory {
 public:
  virtual ~SequenceMemory() = default;
  // Forgets a sequence's tokens from that position on. false: it cannot forget a part.
  virtual bool truncate(int sequence, int position) = 0;
  virtual void clear(int sequence) = 0;
  // Adds the tokens at positions [first, end) of one to another, which has those before them.
  virtual void copy(int from, int to, int first, int end) = 0;
};

// A token in a cell.
struct Written {
  int32_t cell;
  uint64_t write;  // which of those to the cell
  bool operator==(const Written&) const = default;
};

class LlamaTexts {
 public:
  // `copies_parts`: whether memory can copy the beginning of a sequence, not only all of it.
  LlamaTexts(SequenceMemory& memory, int n_sequences, bool copies_parts);

  // A sequence of libllama's whose text is as long a beginning of `text` as there is anywhere; the rest
  // has to be computed. `owner`: ours, which has the same one again next time if it is free. Taken until
  // release_all(). nullopt: all are taken.
  struct Place {
    int sequence;
    int n_there;  // tokens
  };
  std::optional<Place> take(std::span<const Written> text, std::optional<SequenceId> owner);
  // libllama computed what follows in a sequence that is taken.
  void append(int sequence, std::span<const Written> more);
  void release_all();
  // Forgets all texts that are not taken, and of those the ones whose owner says so.
  void clear_others();
  void clear_if(const std::function<bool(std::optional<SequenceId> owner)>& is_over);

 private:
  struct Text {
    std::vector<Written> tokens;
    std::optional<SequenceId> owner;
    bool is_taken = false;
    int64_t last_used = 0;
  };
  Text& at(int sequence) { return texts_[static_cast<size_t>(sequence)]; }
  std::optional<int> choose(std::optional<SequenceId> owner) const;
  void forget(int sequence);
  // What of a sequence's text can be had as a beginning of `text`.
  int n_usable(const Text& of, std::span<const Written> text) const;

  SequenceMemory& memory_;
  bool copies_parts_;
  std::vector<Text> texts_;
  int64_t n_taken_ = 0;
};

}  // namespace forerun
