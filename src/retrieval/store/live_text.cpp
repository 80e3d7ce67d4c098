#include "retrieval/store/live_text.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace forerun {
namespace {

void check_document(std::span<const TokenId> document, int n_vocab) {
  const auto unknown = std::find_if(document.begin(), document.end(), [n_vocab](TokenId token) {
    return to_int(token) < 0 || to_int(token) >= n_vocab;
  });
  if (unknown != document.end()) {
    fail(ErrorCode::kInvalidArgument, "token {} is not in the datastore's vocabulary of {} tokens",
         to_int(*unknown), n_vocab);
  }
  if (static_cast<int64_t>(document.size()) >= Segment::kMaxTokens) {
    fail(ErrorCode::kInvalidArgument, "a document of {} tokens is too long for a datastore",
         document.size());
  }
}

}  // namespace

LiveText::LiveText(const Settings& settings, Journal journal, SegmentTable& table)
    : settings_(settings), table_(table), journal_(std::make_shared<Journal>(std::move(journal))) {}

LiveText::Added LiveText::add(std::span<const TokenId> document) {
  check_document(document, settings_.identity.n_vocab);
  if (document.empty()) return Added::kNothing;
  const std::lock_guard lock(mutex_);
  const bool grows =
      !tail_.empty() && static_cast<int64_t>(tail_.size() + document.size()) < settings_.max_tail_tokens;
  std::vector<TokenId> text;
  if (grows) text = tail_;
  text.insert(text.end(), document.begin(), document.end());
  text.push_back(Segment::kSeparator);
  auto segment = Segment::build(text, settings_.identity, 1);

  const int64_t n_bytes = journal_->n_bytes();
  journal_->append(document);
  if (settings_.sync_each) {
    try {
      journal_->sync();
    } catch (const Error&) {
      journal_->cut(n_bytes);
      throw;
    }
  }
  synced_ = settings_.sync_each;
  tail_ = std::move(text);
  if (grows) {
    table_.replace_newest(std::move(segment));
    return Added::kTailGrew;
  }
  table_.append(std::move(segment));
  return Added::kTailBegan;
}

std::shared_ptr<const Journal> LiveText::rotate(Journal next) {
  auto journal = std::make_shared<Journal>(std::move(next));
  const std::lock_guard lock(mutex_);
  journal_.swap(journal);
  synced_ = true;
  tail_.clear();
  table_.freeze();
  return journal;
}

void LiveText::sync() {
  std::shared_ptr<const Journal> journal;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(synced_, true)) return;
    journal = journal_;
  }
  try {
    journal->sync();  // documents may be added meanwhile
  } catch (...) {
    const std::lock_guard lock(mutex_);
    synced_ = false;
    throw;
  }
}

int64_t LiveText::n_journal_bytes() const {
  const std::lock_guard lock(mutex_);
  return journal_->n_bytes();
}

}  // namespace forerun
