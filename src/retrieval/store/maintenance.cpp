#include "retrieval/store/maintenance.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "core/replace_file.h"
#include "retrieval/segment_file.h"
#include "retrieval/store/idle.h"
#include "retrieval/store/merge_policy.h"
#include "retrieval/store/segment_texts.h"

namespace forerun {
namespace {

// A piece of some work: its progress is that part of the whole's which lies between two
// shares.
Effort part_of(const Effort& whole, double begin, double end) {
  Effort part = whole;
  if (whole.progress) {
    part.progress = [progress = whole.progress, begin, end](double share) {
      return progress(begin + share * (end - begin));
    };
  }
  return part;
}

// Merging copies text that nobody may look at again, so damage must not go unnoticed.
void check_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  try {
    verify_segment_blocks(file.bytes(), path);
  } catch (const Error& error) {
    fail_with_repair_advice(error, path.parent_path());
  }
}

}  // namespace

MergeLimits MergeLimits::for_capacity(int64_t capacity_tokens) const {
  MergeLimits limits = *this;
  if (capacity_tokens > 0) {
    limits.max_segment_tokens =
        std::min(limits.max_segment_tokens, std::max<int64_t>(1, capacity_tokens / kMinSegments));
  }
  limits.fold_tokens = std::min(limits.fold_tokens, limits.max_segment_tokens);
  return limits;
}

class Maintenance::NewFiles {
 public:
  explicit NewFiles(StoreFiles& files) : files_(files) {}
  ~NewFiles() {
    std::error_code ignored;
    for (const auto& path : paths_) std::filesystem::remove(path, ignored);
  }
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  uint64_t add_segment() {
    const uint64_t number = files_.take_number();
    paths_.push_back(files_.segment_path(number));
    return number;
  }
  uint64_t add_journal() {
    const uint64_t number = files_.take_number();
    paths_.push_back(files_.journal_path(number));
    return number;
  }
  void keep() { paths_.clear(); }

 private:
  StoreFiles& files_;
  std::vector<std::filesystem::path> paths_;
};

Maintenance::Maintenance(const Parts& parts, const MergeLimits& limits)
    : files_(parts.files),
      table_(parts.table),
      live_(parts.live),
      identity_(files_.manifest().identity),
      capacity_tokens_(files_.manifest().capacity_tokens),
      limits_(limits),
      sources_(files_.sources_path(), identity_, files_.manifest().n_source_bytes) {}

std::unique_lock<std::mutex> Maintenance::take_turn() {
  ++n_waiting_;
  std::unique_lock turn(turn_);
  --n_waiting_;
  return turn;
}

bool Maintenance::wants_tidy() const {
  const SegmentTable::View view = table_.view();
  const auto sizes = sizes_of(view.files());
  return count_tokens(view.live()) >= limits_.fold_tokens ||
         merge_from(sizes, limits_.max_segment_tokens) < sizes.size() ||
         count_to_drop(sizes, capacity_tokens_) > 0;
}

bool Maintenance::tidy(const Effort& effort) {
  // Work in the background waits without hurrying anybody.
  const auto turn = effort.when_idle ? std::unique_lock(turn_) : take_turn();
  return fold_all(effort);
}

bool Maintenance::fold_all(const Effort& effort) {
  freeze_live_text();
  return fold_frozen(effort);
}

bool Maintenance::fold_frozen(const Effort& effort) {
  const SegmentTable::View view = table_.view();
  const auto frozen = view.all().first(view.n_frozen);
  const size_t n_dropped = count_to_drop(sizes_of(frozen), capacity_tokens_);
  // Frozen text counts as one segment, which it becomes.
  auto sizes = sizes_of(view.files());
  const int64_t n_folded = count_tokens(frozen.subspan(view.n_files));
  if (n_folded > 0) sizes.push_back(n_folded);
  size_t first = merge_from(std::span(sizes).subspan(std::min(n_dropped, view.n_files)),
                            limits_.max_segment_tokens);
  first = std::min(first + std::min(n_dropped, view.n_files), view.n_files);
  return rewrite(n_dropped, std::max(first, n_dropped), effort);
}

bool Maintenance::compact(const Effort& effort) {
  const auto turn = take_turn();
  // What an attempt that failed has frozen goes first.
  const SegmentTable::View before = table_.view();
  if (before.n_frozen > before.n_files && !fold_frozen(part_of(effort, 0, 0.1))) return false;
  freeze_live_text();
  const SegmentTable::View view = table_.view();
  const auto sizes = sizes_of(view.all().first(view.n_frozen));
  const size_t n_dropped = count_to_drop(sizes, capacity_tokens_);
  return rewrite(n_dropped, n_dropped, effort);
}

void Maintenance::freeze_live_text() {
  const SegmentTable::View view = table_.view();
  if (view.n_frozen > view.n_files || view.changing().empty()) return;
  NewFiles new_files(files_);
  const uint64_t number = new_files.add_journal();
  Journal next = Journal::create(files_.journal_path(number), identity_);
  Manifest manifest = files_.manifest();
  manifest.journals.push_back(number);
  sync_folder(files_.folder());
  files_.commit(std::move(manifest));
  new_files.keep();
  std::shared_ptr<const Journal> former;
  {
    const std::lock_guard no_merge(merging_);
    former = live_.rotate(std::move(next));
  }
  former->sync();
}

bool Maintenance::rewrite(size_t n_dropped, size_t first, const Effort& effort) {
  const SegmentTable::View view = table_.view();
  const auto frozen = view.all().first(view.n_frozen);
  Manifest manifest = files_.manifest();
  std::vector<FileSegment> files;
  for (size_t i = n_dropped; i < first; ++i) files.push_back({frozen[i], manifest.segments[i]});

  NewFiles new_files(files_);
  const auto rest = frozen.subspan(first);
  const double n_tokens = static_cast<double>(std::max<int64_t>(1, count_tokens(rest)));
  double n_done = 0;
  size_t begin = 0;
  for (const size_t end : runs_up_to(sizes_of(rest), limits_.max_segment_tokens)) {
    const auto run = rest.subspan(begin, end - begin);
    const size_t in_manifest = first + begin;
    begin = end;
    if (run.size() == 1 && in_manifest < view.n_files) {
      files.push_back({run[0], manifest.segments[in_manifest]});
      continue;
    }
    const auto text = [&] {
      for (size_t i = in_manifest; i < std::min(first + end, view.n_files); ++i) {
        check_file(files_.segment_path(manifest.segments[i].number));
      }
      return concatenated_text(run);
    };
    const double share = static_cast<double>(count_tokens(run)) / n_tokens;
    const auto written = write_segment(text, part_of(effort, n_done, n_done + share), new_files);
    if (!written) return false;
    n_done += share;
    files.push_back(*written);
  }
  // All that is frozen is in files now, and with it all journals but the one being written.
  manifest.journals = {manifest.journals.back()};
  commit(std::move(manifest), files, new_files);
  return true;
}

std::optional<Maintenance::FileSegment> Maintenance::write_segment(
    const std::function<std::vector<TokenId>()>& text, const Effort& effort, NewFiles& new_files) {
  FileSegment file{};
  file.entry.number = new_files.add_segment();
  const std::filesystem::path path = files_.segment_path(file.entry.number);
  const auto write = [&] {
    const auto segment = Segment::build(text(), identity_, effort.n_threads, effort.progress);
    if (segment == nullptr) return;
    segment->write(path);
    file.segment = Segment::open(path);
  };
  if (effort.when_idle) {
    run_when_idle(write);
  } else {
    write();
  }
  if (file.segment == nullptr) return std::nullopt;
  file.entry.n_tokens = file.segment->n_tokens();
  file.entry.n_documents = file.segment->n_documents();
  return file;
}

void Maintenance::commit(Manifest manifest, const std::vector<FileSegment>& files, NewFiles& new_files) {
  SegmentList segments;
  manifest.segments.clear();
  for (const FileSegment& file : files) {
    segments.push_back(file.segment);
    manifest.segments.push_back(file.entry);
  }
  if (manifest != files_.manifest()) files_.commit(std::move(manifest));
  new_files.keep();
  table_.replace_frozen(segments);
}

bool Maintenance::add_texts(const TextReader& next, const Effort& effort) {
  const auto turn = take_turn();
  // Files are in the order of age, so live text becomes a file first.
  if (!table_.view().live().empty() && !fold_all({.n_threads = effort.n_threads})) return false;

  const SegmentTable::View view = table_.view();
  Manifest manifest = files_.manifest();
  std::vector<FileSegment> files;
  for (size_t i = 0; i < view.n_files; ++i) files.push_back({view.files()[i], manifest.segments[i]});
  NewFiles new_files(files_);
  std::vector<uint64_t> sources;
  while (auto more = next()) {
    sources.insert(sources.end(), more->sources.begin(), more->sources.end());
    if (more->text.empty()) continue;
    const auto written = write_segment([&] { return std::move(more->text); }, effort, new_files);
    if (!written) return false;
    files.push_back(*written);
  }
  std::vector<int64_t> sizes;
  for (const FileSegment& file : files) sizes.push_back(file.entry.n_tokens);
  const auto n_dropped = static_cast<std::ptrdiff_t>(count_to_drop(sizes, capacity_tokens_));
  files.erase(files.begin(), files.begin() + n_dropped);

  const std::lock_guard lock(sources_mutex_);
  manifest.n_source_bytes = sources_.write(sources);
  commit(std::move(manifest), files, new_files);
  sources_.added(sources, files_.manifest().n_source_bytes);
  return true;
}

bool Maintenance::merge_in_memory(const Effort& effort) {
  const std::lock_guard lock(merging_);
  const SegmentTable::View view = table_.view();
  if (view.changing().empty()) return false;
  const auto closed = view.changing().first(view.changing().size() - 1);  // the newest still grows
  const size_t from = merge_from(sizes_of(closed), limits_.fold_tokens);
  if (from == closed.size()) return false;
  const auto run = closed.subspan(from);
  std::shared_ptr<const Segment> merged;
  const auto merge = [&] {
    merged = Segment::build(concatenated_text(run), identity_, effort.n_threads, effort.progress);
  };
  if (effort.when_idle) {
    run_when_idle(merge);
  } else {
    merge();
  }
  if (merged == nullptr) return false;
  table_.replace_changing(run, std::move(merged));
  return true;
}

bool Maintenance::has_source(uint64_t hash) const {
  const std::lock_guard lock(sources_mutex_);
  return sources_.contains(hash);
}

}  // namespace forerun
