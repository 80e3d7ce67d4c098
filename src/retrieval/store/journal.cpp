#include "retrieval/store/journal.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace forerun {
namespace {

LogIdentity journal_identity(const Segment::Identity& identity) {
  return {LogIdentity::Kind::kJournal, identity};
}

}  // namespace

JournalContents read_journal(const std::filesystem::path& path, const Segment::Identity& identity,
                             Damage damage) {
  const LogContents log = read_log(path, journal_identity(identity), {.damage = damage});
  JournalContents journal{.text = {},
                          .n_good_bytes = log.n_good_bytes,
                          .n_torn_bytes = log.n_torn_bytes,
                          .n_damaged = log.n_damaged};
  const auto in_vocabulary = [&](TokenId token) {
    return to_int(token) >= 0 && to_int(token) < identity.n_vocab;
  };
  for (const auto record : log.records) {
    std::vector<TokenId> document(record.size() / sizeof(TokenId));
    if (!document.empty())
      std::memcpy(document.data(), record.data(), document.size() * sizeof(TokenId));
    if (!std::all_of(document.begin(), document.end(), in_vocabulary)) {
      if (damage == Damage::kFail) {
        fail(ErrorCode::kInvalidFile, "{} is damaged: it has tokens that the vocabulary has not",
             path.string());
      }
      ++journal.n_damaged;
      continue;
    }
    journal.text.insert(journal.text.end(), document.begin(), document.end());
    journal.text.push_back(Segment::kSeparator);
    ++journal.n_documents;
  }
  return journal;
}

Journal Journal::create(const std::filesystem::path& path, const Segment::Identity& identity) {
  return Journal(RecordLog::create(path, journal_identity(identity)));
}

Journal Journal::append_to(const std::filesystem::path& path, int64_t n_good_bytes) {
  return Journal(RecordLog::append_to(path, n_good_bytes));
}

}  // namespace forerun
