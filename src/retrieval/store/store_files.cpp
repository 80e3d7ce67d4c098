#include "retrieval/store/store_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/replace_file.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifest = "manifest";
constexpr std::string_view kSegment = "segment-";
constexpr std::string_view kJournal = "journal-";
constexpr std::string_view kSources = "sources";
constexpr std::string_view kLock = "lock";

std::string file_name(std::string_view prefix, uint64_t number) {
  return fmt::format("{}{:06}", prefix, number);
}

std::set<std::string> names_in(const Manifest& manifest) {
  std::set<std::string> names;
  for (const auto& entry : manifest.segments) names.insert(file_name(kSegment, entry.number));
  for (const uint64_t number : manifest.journals) names.insert(file_name(kJournal, number));
  return names;
}

std::vector<std::string> names_in_folder(const fs::path& folder, std::error_code& error) {
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

// A file that forerun might have left behind.
bool is_ours(std::string_view name) {
  return name.starts_with(kSegment) || name.starts_with(kJournal) ||
         (name.starts_with(kManifest) && name.ends_with(ReplacementFile::kSuffix));
}

void remove_quietly(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

void check_is_store(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) {
    fail(ErrorCode::kNotFound, "there is no datastore {}: 'forerun datastore build' makes one",
         folder.string());
  }
  if (!StoreFiles::exist(folder)) {
    fail(ErrorCode::kInvalidArgument, "{} is not a datastore: it is no folder with a manifest",
         folder.string());
  }
}

// The first manifest of a store, with an empty journal.
Manifest make_store(const StoreFiles& files, const Segment::Identity& identity) {
  Manifest manifest;
  manifest.identity = identity;
  manifest.next_number = 2;
  manifest.journals = {1};
  Journal::create(files.journal_path(1), identity);
  sync_folder(files.folder());
  manifest.write(files.folder() / kManifest);
  std::error_code ignored;
  sync_folder(fs::absolute(files.folder(), ignored).parent_path());
  return manifest;
}

// Makes the folder of a new store; one that exists must be empty, but for what an attempt
// that was interrupted leaves. Whether it had to be made.
bool make_folder(const fs::path& folder) {
  std::error_code error;
  const bool is_new = fs::create_directories(folder, error);
  if (error) fail_io("make", folder, error.value());
  for (const std::string& name : names_in_folder(folder, error)) {
    if (name == kLock || is_ours(name)) continue;
    fail(ErrorCode::kInvalidArgument, "{} is not empty and not a datastore: name a new folder",
         folder.string());
  }
  if (error) fail_io("read", folder, error.value());
  return is_new;
}

}  // namespace

void fail_with_repair_advice(const Error& damage, const fs::path& folder) {
  fail(ErrorCode::kInvalidFile,
       "{}; 'forerun datastore verify --repair {}' keeps what is whole, or restore it from a copy",
       damage.what(), folder.string());
}

bool StoreFiles::exist(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kManifest, ignored);
}

StoreFiles::StoreFiles(fs::path folder, Manifest manifest)
    : folder_(std::move(folder)), manifest_(std::move(manifest)), next_number_(manifest_.next_number) {}

std::unique_ptr<StoreFiles> StoreFiles::open_to_read(const fs::path& folder) {
  check_is_store(folder);
  return std::unique_ptr<StoreFiles>(new StoreFiles(folder, Manifest::read(folder / kManifest)));
}

std::unique_ptr<StoreFiles> StoreFiles::open_to_write(const fs::path& folder) {
  check_is_store(folder);
  auto lock = std::make_unique<WriteLock>(folder);
  auto files = open_to_read(folder);
  files->lock_ = std::move(lock);
  files->remove_leftovers();
  return files;
}

std::unique_ptr<StoreFiles> StoreFiles::create(const fs::path& folder,
                                               const Segment::Identity& identity) {
  if (exist(folder)) return open_to_write(folder);
  const bool is_new = make_folder(folder);
  auto lock = std::make_unique<WriteLock>(folder);
  if (exist(folder)) {  // somebody else was faster
    lock.reset();
    return open_to_write(folder);
  }
  std::unique_ptr<StoreFiles> files(new StoreFiles(folder, {}));
  files->lock_ = std::move(lock);
  try {
    files->manifest_ = make_store(*files, identity);
  } catch (const Error&) {
    for (const fs::path& path : files->present()) remove_quietly(path);
    if (is_new) remove_quietly(folder);
    throw;
  }
  files->next_number_ = files->manifest_.next_number;
  files->remove_leftovers();
  return files;
}

fs::path StoreFiles::segment_path(uint64_t number) const {
  return folder_ / file_name(kSegment, number);
}

fs::path StoreFiles::journal_path(uint64_t number) const {
  return folder_ / file_name(kJournal, number);
}

std::vector<fs::path> StoreFiles::present() const {
  std::vector<fs::path> paths{folder_ / kManifest};
  std::error_code ignored;
  for (const std::string& name : names_in_folder(folder_, ignored)) {
    if (is_ours(name) || name == kSources || name == kLock) paths.push_back(folder_ / name);
  }
  return paths;
}

fs::path StoreFiles::sources_path() const {
  return folder_ / kSources;
}

Manifest StoreFiles::manifest() const {
  const std::lock_guard lock(mutex_);
  return manifest_;
}

bool StoreFiles::reload() {
  Manifest now = Manifest::read(folder_ / kManifest);
  const std::lock_guard lock(mutex_);
  if (now == manifest_) return false;
  manifest_ = std::move(now);
  next_number_ = manifest_.next_number;
  return true;
}

void StoreFiles::commit(Manifest next) {
  next.next_number = next_number_;
  const std::set<std::string> named = names_in(next);
  const std::set<std::string> former = names_in(manifest_);
  const Replaced replaced = next.write(folder_ / kManifest);
  {
    const std::lock_guard lock(mutex_);
    manifest_ = std::move(next);
  }
  // A power cut might bring the former manifest back, which then needs its files.
  if (replaced == Replaced::kVisible) return;
  for (const std::string& name : former) {
    if (!named.contains(name)) remove_quietly(folder_ / name);
  }
}

void StoreFiles::remove_leftovers() const {
  const std::set<std::string> named = names_in(manifest_);
  std::error_code ignored;
  for (const std::string& name : names_in_folder(folder_, ignored)) {
    if (is_ours(name) && !named.contains(name)) remove_quietly(folder_ / name);
  }
}

SegmentList StoreFiles::open_segments() const {
  const Manifest listed = manifest();
  SegmentList segments;
  for (const auto& entry : listed.segments) {
    auto segment = Segment::open(segment_path(entry.number));
    if (segment->identity() != listed.identity || segment->n_tokens() != entry.n_tokens ||
        segment->n_documents() != entry.n_documents) {
      fail(ErrorCode::kInvalidFile, "{} is not the segment that the store's manifest means",
           segment_path(entry.number).string());
    }
    segments.push_back(std::move(segment));
  }
  return segments;
}

}  // namespace forerun
