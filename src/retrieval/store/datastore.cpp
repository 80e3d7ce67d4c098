#include "retrieval/store/datastore.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "retrieval/store/background.h"
#include "retrieval/store/segment_texts.h"

namespace forerun {
namespace {

// While a reader opens files, a writer may replace them; then it looks again.
constexpr int kMaxAttempts = 100;

void check_options(const StoreOptions& options) {
  const auto in_range = [](int64_t n) { return n >= 1 && n <= Segment::kMaxTokens; };
  if (!in_range(options.max_segment_tokens) || !in_range(options.fold_tokens)) {
    fail(ErrorCode::kInvalidArgument, "the sizes of segments must lie between 1 and {} tokens",
         Segment::kMaxTokens);
  }
  if (options.capacity_tokens.value_or(0) < 0 || options.sync_interval.count() < 0) {
    fail(ErrorCode::kInvalidArgument, "a store's capacity and sync interval cannot be negative");
  }
}

std::unique_ptr<StoreFiles> open_files(const std::filesystem::path& path, Datastore::Mode mode,
                                       const StoreOptions& options) {
  switch (mode) {
    case Datastore::Mode::kRead: return StoreFiles::open_to_read(path);
    case Datastore::Mode::kWrite: return StoreFiles::open_to_write(path);
    case Datastore::Mode::kCreate: break;
  }
  CHECK(options.identity.has_value());
  return StoreFiles::create(path, *options.identity);
}

void check_identity(const StoreFiles& files, const std::optional<Segment::Identity>& wanted) {
  if (!wanted || files.manifest().identity == *wanted) return;
  fail(ErrorCode::kInvalidArgument,
       "{} holds text of another tokenizer: use the model it was made with, or another store",
       files.folder().string());
}

void check_text(std::span<const TokenId> text, int n_vocab) {
  const bool valid = std::all_of(text.begin(), text.end(), [n_vocab](TokenId token) {
    return to_int(token) >= to_int(Segment::kSeparator) && to_int(token) < n_vocab;
  });
  if (!valid || (!text.empty() && text.back() != Segment::kSeparator) ||
      static_cast<int64_t>(text.size()) > Segment::kMaxTokens) {
    fail(ErrorCode::kInvalidArgument,
         "the text has tokens that the datastore's vocabulary of {} tokens has not, or is too long",
         n_vocab);
  }
}

// Segments of a text, cut between documents so that none is much larger than `max_tokens`.
SegmentList segments_of(std::span<const TokenId> text, const Segment::Identity& identity,
                        int64_t max_tokens) {
  SegmentList segments;
  while (!text.empty()) {
    const auto limit = text.begin() + std::min<std::ptrdiff_t>(max_tokens - 1, std::ssize(text) - 1);
    const auto end = std::find(limit, text.end(), Segment::kSeparator) + 1;
    segments.push_back(Segment::build({text.begin(), end}, identity, 1));
    text = {end, text.end()};
  }
  return segments;
}

}  // namespace

struct Datastore::Writer {
  std::unique_ptr<LiveText> live;
  std::unique_ptr<Maintenance> maintenance;
  std::unique_ptr<Background> background;  // stops first
};

Datastore::Datastore(std::unique_ptr<StoreFiles> files) : files_(std::move(files)) {}

Datastore::~Datastore() {
  if (writer_ == nullptr) return;
  writer_->background.reset();
  try {
    writer_->live->sync();
  } catch (const Error&) {
    // Nobody is left to tell, and only a power cut could make it matter.
  }
}

std::unique_ptr<Datastore> Datastore::open(const std::filesystem::path& path, Mode mode,
                                           const StoreOptions& options) {
  check_options(options);
  std::unique_ptr<Datastore> store(new Datastore(open_files(path, mode, options)));
  check_identity(*store->files_, options.identity);
  try {
    store->load(mode, options.max_segment_tokens);
    if (mode != Mode::kRead) store->begin_writing(options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound && error.code() != ErrorCode::kInvalidFile) throw;
    fail_with_repair_advice(error, path);
  }
  return store;
}

void Datastore::load(Mode mode, int64_t max_segment_tokens) {
  for (int n_attempts = 1;; ++n_attempts) {
    try {
      load_segments(max_segment_tokens);
      return;
    } catch (const Error& error) {
      const bool may_be_replaced = mode == Mode::kRead && error.code() == ErrorCode::kNotFound;
      if (!may_be_replaced || n_attempts == kMaxAttempts || !files_->reload()) throw;
    }
  }
}

void Datastore::load_segments(int64_t max_segment_tokens) {
  const Manifest manifest = files_->manifest();
  table_ = std::make_unique<SegmentTable>(files_->open_segments());
  for (const uint64_t number : manifest.journals) {
    // What journals before the newest hold is on its way into files.
    if (number == manifest.journals.back()) table_->freeze();
    const JournalContents journal = read_journal(files_->journal_path(number), manifest.identity);
    for (auto& segment : segments_of(journal.text, manifest.identity, max_segment_tokens)) {
      table_->append(std::move(segment));
    }
    n_good_journal_bytes_ = journal.n_good_bytes;
  }
}

void Datastore::begin_writing(const StoreOptions& options) {
  Manifest manifest = files_->manifest();
  if (options.capacity_tokens && *options.capacity_tokens != manifest.capacity_tokens) {
    manifest.capacity_tokens = *options.capacity_tokens;
    files_->commit(manifest);
  }
  const MergeLimits limits = MergeLimits{options.fold_tokens, options.max_segment_tokens}.for_capacity(
      manifest.capacity_tokens);
  const LiveText::Settings live{
      .identity = manifest.identity,
      .max_tail_tokens = std::min(LiveText::kMaxTailTokens, limits.fold_tokens),
      .sync_each = options.sync_interval.count() == 0};
  writer_ = std::make_unique<Writer>();
  writer_->live = std::make_unique<LiveText>(
      live, Journal::append_to(files_->journal_path(manifest.journals.back()), n_good_journal_bytes_),
      *table_);
  const Maintenance::Parts parts{*files_, *table_, *writer_->live};
  writer_->maintenance = std::make_unique<Maintenance>(parts, limits);
  if (!options.background) return;
  const auto report = [this, tell = options.on_problem](const std::string& message) {
    note_problem(message);
    if (tell) tell(message);
  };
  writer_->background = std::make_unique<Background>(
      parts, *writer_->maintenance, Background::Settings{options.sync_interval, report});
}

Datastore::Writer& Datastore::writer() const {
  if (writer_ == nullptr) {
    fail(ErrorCode::kInvalidArgument, "the datastore {} is open to be read only",
         files_->folder().string());
  }
  return *writer_;
}

void Datastore::note_problem(const std::string& message) {
  const std::lock_guard lock(problem_mutex_);
  problem_ = message;
}

void Datastore::add(std::span<const TokenId> document) {
  Writer& writer = this->writer();
  LiveText::Added added{};
  try {
    added = writer.live->add(document);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kIo) note_problem(error.what());
    throw;
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kOutOfMemory, "not enough memory to add {} tokens to the datastore",
         document.size());
  }
  if (added == LiveText::Added::kTailBegan && writer.background) writer.background->wake();
}

void Datastore::flush() {
  writer().live->sync();
}

bool Datastore::add_text(std::vector<TokenId> text, std::span<const uint64_t> sources,
                         const Effort& effort) {
  std::optional<SourcedText> only(SourcedText{std::move(text), {sources.begin(), sources.end()}});
  return add_texts([&] { return std::exchange(only, std::nullopt); }, effort);
}

bool Datastore::add_texts(const TextReader& next, const Effort& effort) {
  const int n_vocab = files_->manifest().identity.n_vocab;
  const auto next_checked = [&] {
    auto text = next();
    if (text) check_text(text->text, n_vocab);
    return text;
  };
  return writer().maintenance->add_texts(next_checked, effort);
}

bool Datastore::has_source(uint64_t hash) const {
  return writer().maintenance->has_source(hash);
}

bool Datastore::was_kept(std::span<const TokenId> document) const {
  return has_source(hash_of_document(document));
}

std::vector<uint64_t> Datastore::sources() const {
  const Manifest manifest = files_->manifest();
  const Sources sources(files_->sources_path(), manifest.identity, manifest.n_source_bytes);
  return {sources.hashes().begin(), sources.hashes().end()};
}

bool Datastore::tidy(const Effort& effort) {
  return writer().maintenance->tidy(effort);
}

bool Datastore::compact(const Effort& effort) {
  return writer().maintenance->compact(effort);
}

StoreInfo Datastore::info() const {
  const Manifest manifest = files_->manifest();
  const SegmentTable::View view = table_->view();
  StoreInfo info{.path = files_->folder(),
                 .identity = manifest.identity,
                 .capacity_tokens = manifest.capacity_tokens,
                 .n_tokens = count_tokens(view.all()),
                 .n_documents = count_documents(view.all()),
                 .n_live_tokens = count_tokens(view.live()),
                 .n_live_documents = count_documents(view.live()),
                 .n_bytes = 0,
                 .n_memory_bytes = 0,
                 .n_segments = static_cast<int>(view.all().size()),
                 .files = {},
                 .problem = {}};
  for (const auto& entry : manifest.segments) {
    const auto path = files_->segment_path(entry.number);
    std::error_code gone;
    const auto n_bytes = std::filesystem::file_size(path, gone);
    info.files.push_back({path.filename().string(), entry.n_tokens, entry.n_documents,
                          gone ? 0 : static_cast<int64_t>(n_bytes)});
    info.n_bytes += info.files.back().n_bytes;
  }
  for (const uint64_t number : manifest.journals) {
    std::error_code gone;
    const auto n_bytes = std::filesystem::file_size(files_->journal_path(number), gone);
    if (!gone) info.n_bytes += static_cast<int64_t>(n_bytes);
  }
  info.n_bytes += manifest.n_source_bytes;
  for (const auto& segment : view.live()) info.n_memory_bytes += segment->n_bytes();
  const std::lock_guard lock(problem_mutex_);
  info.problem = problem_;
  return info;
}

}  // namespace forerun
