#include "model/slots.h"

#include <algorithm>

#include "core/check.h"

namespace forerun {
namespace {

// Texts that are kept at most, so that looking through them takes no time.
constexpr size_t kMostTexts = 1024;

size_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

Slots::Slots(Executor& executor, int n_slots, int n_context)
    : executor_(executor), n_slots_(n_slots), n_context_(n_context) {
  CHECK(n_slots > 0 && n_context <= executor.cells().n_cells());
}

Slots::~Slots() {
  for (const auto& slot : slots_) executor_.cells().remove(slot->sequence);
}

Slots::Beginning Slots::longest_beginning(std::span<const TokenId> prompt) const {
  Beginning longest;
  for (const auto& slot : slots_) {
    const auto n = static_cast<int>(common_prefix(prompt, slot->text));
    if (n > longest.n_tokens) longest = {.slot = slot.get(), .n_tokens = n};
  }
  return longest;
}

int Slots::n_cells_beside(const Beginning& beginning) const {
  std::vector<bool> is_held(static_cast<size_t>(executor_.cells().n_cells()));
  const auto hold = [&](const Slot& slot, size_t n_tokens) {
    for (const int32_t cell : executor_.cells().committed_cells(slot.sequence).first(n_tokens)) {
      is_held[static_cast<size_t>(cell)] = true;
    }
  };
  for (const auto& slot : slots_) {
    if (slot->is_taken) hold(*slot, slot->text.size());
  }
  if (beginning.slot != nullptr) hold(*beginning.slot, static_cast<size_t>(beginning.n_tokens));
  return static_cast<int>(std::count(is_held.begin(), is_held.end(), false));
}

int Slots::n_cells_taken() const {
  return executor_.cells().n_cells() - n_cells_beside({});
}

Slot* Slots::acquire(std::span<const TokenId> prompt, const Wanted& wanted) {
  CHECK(!prompt.empty());
  if (n_taken_ == n_slots_) return nullptr;
  const Beginning beginning =
      wanted.may_share ? longest_beginning(prompt.first(prompt.size() - 1)) : Beginning();
  const int n_needed = static_cast<int>(prompt.size()) - beginning.n_tokens + wanted.n_more;
  if (n_free() < n_needed && n_cells_beside(beginning) < n_needed) return nullptr;

  KvCells& cells = executor_.cells();
  Slot* slot = beginning.slot;
  const auto n_shared = static_cast<size_t>(beginning.n_tokens);
  if (slot == nullptr) {
    slot = &add(cells.create());
  } else if (slot->is_taken || n_shared < slot->text.size()) {
    // What goes on another way is another text, which may be wanted again.
    slot->last_used = ++n_acquired_;
    slot = &add(cells.fork(slot->sequence, beginning.n_tokens));
  }
  cells.reserve(slot->sequence, n_context_);
  slot->text.reserve(static_cast<size_t>(n_context_));
  slot->text.assign(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(n_shared));
  slot->is_taken = true;
  slot->last_used = ++n_acquired_;
  ++n_taken_;
  if (make_room(n_needed)) return slot;
  release(*slot);  // drafts that are not text yet have cells too
  return nullptr;
}

void Slots::release(Slot& slot) {
  CHECK(slot.is_taken);
  executor_.cells().rollback(slot.sequence);
  slot.is_taken = false;
  --n_taken_;
  // Of two texts of which one begins with the other, the longer one serves for both.
  const auto continues = [](const Slot& a, const Slot& b) {
    return common_prefix(a.text, b.text) == b.text.size();
  };
  std::vector<const Slot*> spare;
  for (const auto& other : slots_) {
    if (other.get() == &slot || other->is_taken) continue;
    if (continues(*other, slot)) return forget(slot);
    if (continues(slot, *other)) spare.push_back(other.get());
  }
  for (const Slot* other : spare) forget(*other);
  if (slots_.size() > kMostTexts + static_cast<size_t>(n_taken_)) forget(*least_recently_used());
}

void Slots::drop(Slot& slot) {
  CHECK(slot.is_taken);
  executor_.cells().rollback(slot.sequence);
  --n_taken_;
  forget(slot);
}

bool Slots::make_room(int n_cells) {
  while (n_free() < n_cells) {
    const Slot* oldest = least_recently_used();
    if (oldest == nullptr) return false;
    forget(*oldest);
  }
  return true;
}

void Slots::clear() {
  CHECK(n_taken_ == 0);
  while (!slots_.empty()) forget(*slots_.back());
}

Slot& Slots::add(SequenceId sequence) {
  slots_.push_back(std::make_unique<Slot>(Slot{.sequence = sequence}));
  return *slots_.back();
}

void Slots::forget(const Slot& slot) {
  executor_.cells().remove(slot.sequence);
  std::erase_if(slots_, [&](const auto& one) { return one.get() == &slot; });
}

Slot* Slots::least_recently_used() const {
  Slot* oldest = nullptr;
  for (const auto& slot : slots_) {
    if (slot->is_taken) continue;
    if (oldest == nullptr || slot->last_used < oldest->last_used) oldest = slot.get();
  }
  return oldest;
}

const Slot* Slots::newest() const {
  const auto newest = std::max_element(slots_.begin(), slots_.end(), [](const auto& a, const auto& b) {
    return a->last_used < b->last_used;
  });
  return newest != slots_.end() ? newest->get() : nullptr;
}

void Slots::save(const std::filesystem::path& path) const {
  const Slot* slot = newest();
  if (slot == nullptr) return;
  executor_.save(slot->sequence, slot->text, path);
}

void Slots::restore(const std::filesystem::path& path) {
  auto restored = executor_.restore(path);
  if (!restored) return;
  if (static_cast<int>(restored->tokens.size()) > n_context_) {
    executor_.cells().remove(restored->sequence);
    return;
  }
  Slot& slot = add(restored->sequence);
  slot.text.assign(restored->tokens.begin(), restored->tokens.end());
  slot.last_used = ++n_acquired_;
}

}  // namespace forerun
