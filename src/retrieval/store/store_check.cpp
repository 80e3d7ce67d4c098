#include "retrieval/store/store_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/replace_file.h"
#include "retrieval/store/sources.h"
#include "retrieval/store/store_files.h"

namespace forerun {
namespace {

// A report, and the manifest of a store that has only what is whole.
struct Finding {
  StoreReport report;
  Manifest whole;
  bool journals_damaged = false;
  bool file_missing = false;
};

void check_segment(const StoreFiles& files, const Manifest::SegmentEntry& entry, Finding& finding) {
  const auto path = files.segment_path(entry.number);
  try {
    const auto segment = Segment::open(path);
    if (segment->identity() != finding.whole.identity || segment->n_tokens() != entry.n_tokens ||
        segment->n_documents() != entry.n_documents) {
      fail(ErrorCode::kInvalidFile, "{} is not the segment that the manifest means", path.string());
    }
    segment->verify();
    finding.whole.segments.push_back(entry);
    finding.report.n_tokens += entry.n_tokens;
    finding.report.n_documents += entry.n_documents;
    ++finding.report.n_segments;
  } catch (const Error& error) {
    finding.file_missing = finding.file_missing || error.code() == ErrorCode::kNotFound;
    finding.report.problems.push_back(error.what());
  }
}

void check_journal(const StoreFiles& files, uint64_t number, Finding& finding) {
  const auto path = files.journal_path(number);
  try {
    const JournalContents journal = read_journal(path, finding.whole.identity);
    finding.report.n_tokens += static_cast<int64_t>(journal.text.size());
    finding.report.n_documents += journal.n_documents;
    if (journal.n_torn_bytes > 0) {
      finding.report.notes.push_back(
          fmt::format("{} ends with {} bytes of a document that was never added completely",
                      path.string(), journal.n_torn_bytes));
    }
  } catch (const Error& error) {
    finding.file_missing = finding.file_missing || error.code() == ErrorCode::kNotFound;
    finding.journals_damaged = true;
    finding.report.problems.push_back(error.what());
  }
}

Finding check_files(const StoreFiles& files, const CheckProgress& progress) {
  const Manifest manifest = files.manifest();
  Finding finding;
  finding.whole = manifest;
  finding.whole.segments.clear();
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
    finding.whole.n_source_bytes = 0;
    finding.report.problems.push_back(error.what());
  }
  if (progress) progress(1.0);
  return finding;
}

// A journal of all documents of the journals that can still be read.
uint64_t salvage_journals(StoreFiles& files, const Manifest& manifest, StoreReport& report) {
  const uint64_t number = files.take_number();
  Journal salvaged = Journal::create(files.journal_path(number), manifest.identity);
  for (const uint64_t damaged : manifest.journals) {
    try {
      const JournalContents journal =
          read_journal(files.journal_path(damaged), manifest.identity, Damage::kSkip);
      for (auto begin = journal.text.begin(); begin != journal.text.end();) {
        const auto end = std::find(begin, journal.text.end(), Segment::kSeparator);
        salvaged.append({begin, end});
        begin = end + 1;
      }
      if (journal.n_damaged > 0) {
        report.notes.push_back(fmt::format("{} documents of {} are kept", journal.n_documents,
                                           files.journal_path(damaged).string()));
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kIo) throw;
      report.notes.push_back(
          fmt::format("nothing of {} can be kept", files.journal_path(damaged).string()));
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
  Finding finding = check_files(*files, progress);
  if (finding.report.problems.empty()) return std::move(finding.report);
  if (finding.journals_damaged) {
    finding.whole.journals = {salvage_journals(*files, finding.whole, finding.report)};
  }
  files->commit(std::move(finding.whole));
  return std::move(finding.report);
}

}  // namespace forerun
