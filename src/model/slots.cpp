#include "model/slots.h"

#include <algorithm>

#include "core/check.h"

namespace forerun {
namespace {

size_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

Slots::Slots(Executor& executor, int n_slots, int n_context)
    : executor_(executor), n_context_(n_context), slots_(static_cast<size_t>(n_slots)) {
  CHECK(n_slots > 0 && int64_t{n_slots} * n_context <= executor.cells().n_cells());
  for (Slot& slot : slots_) {
    slot.sequence = executor.cells().create();
    slot.text.reserve(static_cast<size_t>(n_context));
  }
}

Slots::~Slots() {
  for (const Slot& slot : slots_) executor_.cells().remove(slot.sequence);
}

Slot* Slots::acquire(std::span<const TokenId> prompt) {
  CHECK(!prompt.empty());
  // The last token of the prompt is read in any case: its logits are wanted.
  const auto usable = prompt.first(prompt.size() - 1);
  Slot* best = nullptr;
  const Slot* source = nullptr;
  size_t n_kept = 0, n_source = 0;
  for (Slot& slot : slots_) {
    const size_t n = common_prefix(usable, slot.text);
    if (source == nullptr || n > n_source) {
      source = &slot;
      n_source = n;
    }
    if (slot.is_taken) continue;
    // A text that goes on another way is another text, which may be wanted again.
    const size_t kept = 2 * n >= slot.text.size() ? n : 0;
    if (best == nullptr || kept > n_kept || (kept == n_kept && slot.last_used < best->last_used)) {
      best = &slot;
      n_kept = kept;
    }
  }
  if (best == nullptr) return nullptr;
  KvCells& cells = executor_.cells();
  if (common_prefix(usable, best->text) < n_source) {
    cells.remove(best->sequence);
    best->sequence = cells.fork(source->sequence, static_cast<int>(n_source));
  } else {
    cells.truncate(best->sequence, static_cast<int>(n_source));
  }
  best->text.assign(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(n_source));
  best->is_taken = true;
  best->last_used = ++n_acquired_;
  return best;
}

void Slots::release(Slot& slot) {
  CHECK(slot.is_taken);
  executor_.cells().rollback(slot.sequence);
  slot.is_taken = false;
}

void Slots::clear() {
  for (Slot& slot : slots_) {
    CHECK(!slot.is_taken);
    executor_.cells().truncate(slot.sequence, 0);
    slot.text.clear();
  }
}

size_t Slots::newest() const {
  const auto newest = std::max_element(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) {
    return a.last_used < b.last_used;
  });
  return static_cast<size_t>(newest - slots_.begin());
}

void Slots::save(const std::filesystem::path& path) const {
  const Slot& slot = slots_[newest()];
  executor_.cache().save(slot.sequence, slot.text, executor_.model().fingerprint(), path);
}

void Slots::restore(const std::filesystem::path& path) {
  auto restored = executor_.cache().restore(path, executor_.model().fingerprint());
  if (!restored) return;
  Slot& slot = slots_[newest()];
  if (slot.is_taken || static_cast<int>(restored->tokens.size()) > n_context_) {
    executor_.cells().remove(restored->sequence);
    return;
  }
  executor_.cells().remove(slot.sequence);
  slot.sequence = restored->sequence;
  slot.text.assign(restored->tokens.begin(), restored->tokens.end());
}

}  // namespace forerun
