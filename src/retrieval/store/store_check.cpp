#include "retrieval/store/store_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/cpu_topology.h"
#include "core/error.h"
#include "core/replace_file.h"
#include "retrieval/segment_salvage.h"
#include "retrieval/store/sources.h"
#include "retrieval/store/store_files.h"

namespace forerun {
namespace {

// A report, and what is damaged.
struct Finding {
  StoreReport report;
  std::set<uint64_t> damaged_segments;
  std::set<uint64_t> foreign_segments;  // whole, but not what the manifest means
  std::set<uint64_t> damaged_journals;
  bool sources_damaged = false;
  bool file_missing = false;

  // What a check threw goes into the report, unless that is no damage.
  void note(const Error& error) {
    if (error.code() == ErrorCode::kUnsupported) throw error;
    file_missing = file_missing || error.code() == ErrorCode::kNotFound;
    report.problems.push_back(error.what());
  }
};

void count(const Manifest::SegmentEntry& entry, StoreReport& report) {
  report.n_tokens += entry.n_tokens;
  report.n_documents += entry.n_documents;
  ++report.n_segments;
}

void check_segment(const StoreFiles& files, const Manifest::SegmentEntry& entry, Finding& finding) {
  const auto path = files.segment_path(entry.number);
  try {
    const auto segment = Segment::open(path);
    if (segment->identity() != files.manifest().identity || segment->n_tokens() != entry.n_tokens ||
        segment->n_documents() != entry.n_documents) {
      finding.foreign_segments.insert(entry.number);
      fail(ErrorCode::kInvalidFile, "{} is not the segment that the manifest means", path.string());
    }
    segment->verify();
    count(entry, finding.report);
  } catch (const Error& error) {
    finding.damaged_segments.insert(entry.number);
    finding.note(error);
  }
}

void check_journal(const StoreFiles& files, uint64_t number, Finding& finding) {
  const auto path = files.journal_path(number);
  try {
    const JournalContents journal = read_journal(path, files.manifest().identity);
    finding.report.n_tokens += static_cast<int64_t>(journal.text.size());
    finding.report.n_documents += journal.n_documents;
    if (journal.n_torn_bytes > 0) {
      finding.report.notes.push_back(
          fmt::format("{} ends with {} bytes of a document that was never added completely",
                      path.string(), journal.n_torn_bytes));
    }
  } catch (const Error& error) {
    finding.damaged_journals.insert(number);
    finding.note(error);
  }
}

Finding check_files(const StoreFiles& files, const CheckProgress& progress) {
  const Manifest manifest = files.manifest();
  Finding finding;
  int64_t n_tokens = 0;
  for (const auto& entry : manifest.segments) n_tokens += entry.n_tokens;
  int64_t n_done = 0;
  for (const auto& entry : manifest.segments) {
    if (progress) progress(static_cast<double>(n_done) / static_cast<double>(n_tokens));
    check_segment(files, entry, finding);
    n_done += entry.n_tokens;
  }
  for (const uint64_t number : manifest.journals) check_journal(files, number, finding);
  try {
    const Sources sources(files.sources_path(), manifest.identity, manifest.n_source_bytes);
  } catch (const Error& error) {
    finding.sources_damaged = true;
    finding.note(error);
  }
  if (progress) progress(1.0);
  return finding;
}

// The documents of a damaged segment that can be kept.
std::vector<TokenId> text_to_keep(const std::filesystem::path& path, const SegmentClaim& claim) {
  try {
    return salvage_segment(path, claim);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound && error.code() != ErrorCode::kInvalidFile) throw;
    return {};
  }
}

// A new segment of what can be kept of a damaged one; nullopt: nothing.
std::optional<Manifest::SegmentEntry> salvage(StoreFiles& files, const Manifest::SegmentEntry& entry,
                                              const Finding& finding, StoreReport& report) {
  const Segment::Identity identity = files.manifest().identity;
  const auto path = files.segment_path(entry.number);
  std::vector<TokenId> text;
  if (!finding.foreign_segments.contains(entry.number)) {
    text = text_to_keep(path, {identity, entry.n_tokens, entry.n_documents});
  }
  const auto n_kept = std::count(text.begin(), text.end(), Segment::kSeparator);
  const int64_t n_lost = std::max<int64_t>(0, entry.n_documents - n_kept);
  report.n_lost_documents += n_lost;
  report.notes.push_back(
      n_lost == 0
          ? fmt::format("all documents of {} are kept, with a new index", path.string())
          : fmt::format("{} of {} documents of {} are kept", n_kept, entry.n_documents, path.string()));
  if (text.empty()) return std::nullopt;
  const Manifest::SegmentEntry kept{files.take_number(), static_cast<int64_t>(text.size()), n_kept};
  Segment::build(std::move(text), identity, cpu_topology().n_cores)
      ->write(files.segment_path(kept.number));
  return kept;
}

// The hashes of all documents in the files.
std::vector<uint64_t> hashes_of_documents(const StoreFiles& files, const Manifest& manifest) {
  std::vector<uint64_t> hashes;
  std::vector<TokenId> document;
  for (const auto& entry : manifest.segments) {
    const auto segment = Segment::open(files.segment_path(entry.number));
    for (int64_t place = 0; place < segment->n_tokens(); ++place) {
      const TokenId token = segment->token(place);
      if (token != Segment::kSeparator) {
        document.push_back(token);
        continue;
      }
      hashes.push_back(hash_of_document(document));
      document.clear();
    }
  }
  return hashes;
}

// A journal of all documents of the journals that can still be read.
uint64_t salvage_journals(StoreFiles& files, const Finding& finding, StoreReport& report) {
  const Manifest manifest = files.manifest();
  const uint64_t number = files.take_number();
  Journal salvaged = Journal::create(files.journal_path(number), manifest.identity);
  for (const uint64_t former : manifest.journals) {
    try {
      const JournalContents journal =
          read_journal(files.journal_path(former), manifest.identity, Damage::kSkip);
      for (auto begin = journal.text.begin(); begin != journal.text.end();) {
        const auto end = std::find(begin, journal.text.end(), Segment::kSeparator);
        salvaged.append({begin, end});
        begin = end + 1;
      }
      if (!finding.damaged_journals.contains(former)) continue;
      report.n_tokens += static_cast<int64_t>(journal.text.size());
      report.n_documents += journal.n_documents;
      report.notes.push_back(fmt::format("{} documents of {} are kept", journal.n_documents,
                                         files.journal_path(former).string()));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kIo) throw;
      report.notes.push_back(
          fmt::format("nothing of {} can be kept", files.journal_path(former).string()));
    }
  }
  salvaged.sync();
  sync_folder(files.folder());
  return number;
}

}  // namespace

StoreReport verify_store(const std::filesystem::path& folder, const CheckProgress& progress) {
  const auto files = StoreFiles::open_to_read(folder);
  while (true) {
    Finding finding = check_files(*files, progress);
    // A writer may have replaced files meanwhile.
    if (!finding.file_missing || !files->reload()) return std::move(finding.report);
  }
}

StoreReport repair_store(const std::filesystem::path& folder, const CheckProgress& progress) {
  const auto files = StoreFiles::open_to_write(folder);
  const Finding finding = check_files(*files, progress);
  StoreReport report = finding.report;
  if (report.problems.empty()) return report;
  Manifest next = files->manifest();
  for (const auto& entry : std::exchange(next.segments, {})) {
    if (!finding.damaged_segments.contains(entry.number)) {
      next.segments.push_back(entry);
    } else if (const auto kept = salvage(*files, entry, finding, report)) {
      next.segments.push_back(*kept);
      count(*kept, report);
    }
  }
  if (!finding.damaged_journals.empty()) {
    next.journals = {salvage_journals(*files, finding, report)};
  }
  if (finding.sources_damaged || report.n_lost_documents > 0) {
    // Damaged ones are written anew: whatever happens meanwhile, they stay damaged until the
    // manifest says how long they are.
    const Sources former(files->sources_path(), next.identity,
                         finding.sources_damaged ? 0 : next.n_source_bytes);
    next.n_source_bytes = former.write_instead(hashes_of_documents(*files, next));
  }
  files->commit(std::move(next));
  return report;
}

}  // namespace forerun
