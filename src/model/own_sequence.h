// A sequence of the cache for as long as this lives.
#pragma once

#include "model/kv_cells.h"

namespace forerun {

class OwnSequence {
 public:
  // The cells outlive it.
  explicit OwnSequence(KvCells& cells) : cells_(cells), id_(cells.create()) {}
  ~OwnSequence() { cells_.remove(id_); }
  OwnSequence(const OwnSequence&) = delete;
  OwnSequence& operator=(const OwnSequence&) = delete;

  SequenceId id() const { return id_; }

 private:
  KvCells& cells_;
  SequenceId id_;
};

}  // namespace forerun
