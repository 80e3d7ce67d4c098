// Forgets a sequence's scratch nodes at the end, also when a pass fails.
#pragma once

#include <utility>

#include "model/kv_cells.h"

namespace forerun {

class ScratchGuard {
 public:
  // The cells outlive it.
  ScratchGuard(KvCells& cells, SequenceId sequence) : cells_(&cells), sequence_(sequence) {}
  ScratchGuard(ScratchGuard&& other) noexcept
      : cells_(std::exchange(other.cells_, nullptr)), sequence_(other.sequence_) {}
  ScratchGuard& operator=(ScratchGuard&&) = delete;
  ~ScratchGuard() {
    if (cells_ != nullptr) cells_->rollback(sequence_);
  }

 private:
  KvCells* cells_;
  SequenceId sequence_;
};

}  // namespace forerun
