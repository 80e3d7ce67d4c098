// forerun datastore build: a datastore from text files.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <unordered_set>
#include <utility>

#include "cli/datastore/commands.h"
#include "cli/datastore/corpus.h"
#include "cli/hub_model.h"
#include "cli/output.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "core/error.h"
#include "engine/model_names.h"

namespace forerun {
namespace {

using Clock = std::chrono::steady_clock;

// What was read is put into the store at least this often, so that no more is lost when
// the program is killed.
constexpr std::chrono::seconds kCommitInterval{60};
// Text for one thread at a time; a few pieces, so that threads end at about the same time.
constexpr size_t kBatchBytes = 8 * PieceReader::kPieceBytes;
constexpr size_t kBatchPieces = 4096;

struct BuildOptions {
  std::string store;
  std::string model{kDefaultModel};
  HubChoice hub;
  CorpusOptions corpus;
  std::optional<int64_t> capacity_tokens;
  SegmentOptions segments;
  bool json = false;
};

struct BuildCounts {
  int64_t n_files = 0;
  int64_t n_binary_files = 0;
  int64_t n_unreadable_files = 0;
  int64_t n_known_pieces = 0;     // in the store already
  int64_t n_known_documents = 0;  // of pieces that were not
  int64_t n_replaced = 0;         // pieces with bytes that are no UTF-8
  int64_t n_bad_lines = 0;
  int64_t n_skipped_documents = 0;
  int64_t n_documents = 0;
  int64_t n_tokens = 0;
  int64_t n_bytes = 0;
};

struct Piece {
  std::string text;
  uint64_t hash;
  // What it becomes.
  std::vector<TokenId> tokens;  // documents with their separators
  BuildCounts counts;
};

class Builder {
 public:
  Builder(const BuildOptions& options, const Vocabulary& vocabulary, Datastore& store)
      : options_(options), vocabulary_(vocabulary), store_(store) {}

  // False: interrupted.
  bool run() {
    const auto files = list_inputs(options_.corpus);
    for (const InputFile& file : files) n_bytes_total_ += file.n_bytes;
    for (const InputFile& file : files) {
      if (!read(file)) return finish(/*interrupted=*/true);
    }
    return finish(/*interrupted=*/!tokenize_batch());
  }

  const BuildCounts& counts() const { return counts_; }
  double seconds() const { return progress_.seconds(); }

 private:
  // False: interrupted.
  bool read(const InputFile& file) {
    try {
      PieceReader reader(file.path, !options_.corpus.jsonl_fields.empty());
      if (reader.is_binary()) {
        ++counts_.n_binary_files;
        n_bytes_done_ += file.n_bytes;
        return true;
      }
      while (auto text = reader.next()) {
        if (!add_piece(std::move(*text))) return false;
      }
      ++counts_.n_files;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kIo || committing_) throw;
      std::fprintf(stderr, "forerun: %s\n", error.what());
      ++counts_.n_unreadable_files;
    }
    return true;
  }

  bool add_piece(std::string text) {
    const uint64_t hash = hash_of_piece(text, options_.corpus.jsonl_fields);
    if (store_.has_source(hash) || !pending_.insert(hash).second) {
      ++counts_.n_known_pieces;
      n_bytes_done_ += static_cast<int64_t>(text.size());
      return !InterruptGuard::take();
    }
    batch_bytes_ += text.size();
    batch_.push_back({std::move(text), hash, {}, {}});
    const auto n_threads = static_cast<size_t>(options_.segments.threads());
    if (batch_bytes_ < n_threads * kBatchBytes && batch_.size() < n_threads * kBatchPieces) return true;
    return tokenize_batch();
  }

  // Turns the batch into tokens, several pieces at a time; their order stays.
  bool tokenize_batch() {
    std::atomic<size_t> next = 0;
    std::exception_ptr thrown;
    std::mutex mutex;
    const auto work = [&] {
      try {
        for (size_t i = next++; i < batch_.size(); i = next++) tokenize(batch_[i]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        thrown = std::current_exception();
      }
    };
    {
      std::vector<std::jthread> threads;
      for (int i = 1; i < options_.segments.threads(); ++i) threads.emplace_back(work);
      work();
    }
    if (thrown) std::rethrow_exception(thrown);
    for (Piece& piece : batch_) append(piece);
    batch_.clear();
    batch_bytes_ = 0;
    show_progress();
    if (InterruptGuard::take()) return false;
    if (Clock::now() - last_commit_ > kCommitInterval) commit();
    return true;
  }

  void tokenize(Piece& piece) const {
    const PieceDocuments contents = documents_of(piece.text, options_.corpus.jsonl_fields);
    piece.counts.n_bad_lines = contents.n_bad_lines;
    piece.counts.n_replaced = contents.replaced ? 1 : 0;
    for (const std::string& document : contents.documents) {
      try {
        const auto tokens = vocabulary_.tokenize(document, {.add_special = false});
        if (tokens.empty()) continue;
        if (store_.was_kept(tokens)) {
          ++piece.counts.n_known_documents;
          continue;
        }
        piece.tokens.insert(piece.tokens.end(), tokens.begin(), tokens.end());
        piece.tokens.push_back(Segment::kSeparator);
        ++piece.counts.n_documents;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kInvalidArgument) throw;
        ++piece.counts.n_skipped_documents;  // the vocabulary has no token for it
      }
    }
  }

  void append(const Piece& piece) {
    const auto limit = static_cast<size_t>(options_.segments.segment_tokens);
    if (!text_.empty() && text_.size() + piece.tokens.size() > limit) commit();
    text_.insert(text_.end(), piece.tokens.begin(), piece.tokens.end());
    if (piece.counts.n_documents + piece.counts.n_known_documents > 0) sources_.push_back(piece.hash);
    n_bytes_done_ += static_cast<int64_t>(piece.text.size());
    counts_.n_bytes += static_cast<int64_t>(piece.text.size());
    counts_.n_tokens += static_cast<int64_t>(piece.tokens.size());
    counts_.n_documents += piece.counts.n_documents;
    counts_.n_known_documents += piece.counts.n_known_documents;
    counts_.n_bad_lines += piece.counts.n_bad_lines;
    counts_.n_replaced += piece.counts.n_replaced;
    counts_.n_skipped_documents += piece.counts.n_skipped_documents;
  }

  // What was read so far becomes a part of the store.
  void commit() {
    last_commit_ = Clock::now();
    if (sources_.empty()) return;
    committing_ = true;
    store_.add_text(std::exchange(text_, {}), sources_, shown_effort(options_.segments, "indexing"));
    committing_ = false;
    sources_.clear();
    pending_.clear();
    last_commit_ = Clock::now();
  }

  bool finish(bool interrupted) {
    commit();
    return !interrupted && store_.tidy(interruptible("merging"));
  }

  // Merging can be left for later; what was read cannot.
  Effort interruptible(const std::string& what) const {
    Effort effort = shown_effort(options_.segments, what);
    effort.progress = [show = effort.progress](double share) {
      return show(share) && !InterruptGuard::take();
    };
    return effort;
  }

  void show_progress() {
    const double mb = static_cast<double>(counts_.n_bytes) / 1e6;
    const double share =
        static_cast<double>(n_bytes_done_) / static_cast<double>(std::max<int64_t>(1, n_bytes_total_));
    progress_.show(
        std::min(share, 1.0),
        fmt::format(", {} tokens, {:.1f} MB/s", grouped(counts_.n_tokens), mb / progress_.seconds()));
  }

  const BuildOptions& options_;
  const Vocabulary& vocabulary_;
  Datastore& store_;
  WorkProgress progress_{"reading"};
  Clock::time_point last_commit_ = Clock::now();
  BuildCounts counts_;
  int64_t n_bytes_total_ = 0;
  int64_t n_bytes_done_ = 0;
  bool committing_ = false;

  std::vector<Piece> batch_;
  size_t batch_bytes_ = 0;
  std::vector<TokenId> text_;             // not in the store yet
  std::vector<uint64_t> sources_;         // of text_
  std::unordered_set<uint64_t> pending_;  // of text_ and the batch
};

nlohmann::ordered_json to_json(const BuildCounts& counts, const StoreInfo& info, double seconds) {
  return {{"files", counts.n_files},
          {"binary_files", counts.n_binary_files},
          {"unreadable_files", counts.n_unreadable_files},
          {"known_pieces", counts.n_known_pieces},
          {"known_documents", counts.n_known_documents},
          {"replaced_utf8", counts.n_replaced},
          {"bad_lines", counts.n_bad_lines},
          {"skipped_documents", counts.n_skipped_documents},
          {"documents", counts.n_documents},
          {"tokens", counts.n_tokens},
          {"seconds", seconds},
          {"store_documents", info.n_documents},
          {"store_tokens", info.n_tokens}};
}

void print_text(const BuildCounts& counts, const StoreInfo& info, double seconds) {
  std::printf("added %s documents, %s tokens from %s files in %.1f s\n",
              grouped(counts.n_documents).c_str(), grouped(counts.n_tokens).c_str(),
              grouped(counts.n_files).c_str(), seconds);
  const auto note = [](int64_t n, const char* what) {
    if (n > 0) std::printf("%s %s\n", grouped(n).c_str(), what);
  };
  note(counts.n_known_pieces, "pieces of text were in the store already");
  note(counts.n_known_documents, "documents were in the store already");
  note(counts.n_binary_files, "binary files skipped");
  note(counts.n_unreadable_files, "files could not be read");
  note(counts.n_replaced, "pieces had bytes that are not UTF-8; these were replaced");
  note(counts.n_bad_lines, "lines are not JSON objects; skipped");
  note(counts.n_skipped_documents, "documents have characters that the vocabulary has not; skipped");
  std::printf("%s: %s documents, %s tokens, %s\n", info.path.c_str(), grouped(info.n_documents).c_str(),
              grouped(info.n_tokens).c_str(), megabytes(info.n_bytes).c_str());
}

void build(const BuildOptions& options) {
  // A wrong name is said before anything is made.
  if (list_inputs(options.corpus).empty()) {
    const auto extensions = wanted_extensions(options.corpus);
    fail(ErrorCode::kInvalidArgument, "there are no files to read{} in {}: nothing was added",
         extensions.empty() ? "" : fmt::format(" that end in {}", fmt::join(extensions, " or ")),
         fmt::join(options.corpus.inputs, ", "));
  }
  const Vocabulary vocabulary = load_vocabulary(chosen_model(options.model, options.hub));
  StoreOptions store_options = options.segments.store_options();
  store_options.identity = identity_of(vocabulary);
  store_options.capacity_tokens = options.capacity_tokens;
  const CommandStore store(options.store, store_options);
  const InterruptGuard guard;
  Builder builder(options, vocabulary, *store);
  const bool finished = builder.run();
  const BuildCounts& counts = builder.counts();
  if (!finished) {
    fail(ErrorCode::kIo, "interrupted; {} has {} tokens now, and the same command goes on from here",
         options.store, grouped(store->info().n_tokens));
  }
  const bool found_text = counts.n_documents + counts.n_known_documents + counts.n_known_pieces > 0;
  if (!options.corpus.jsonl_fields.empty() && !found_text && counts.n_files > 0) {
    fail(ErrorCode::kInvalidArgument, "no line has text in the field {}: nothing was added",
         fmt::join(options.corpus.jsonl_fields, " or "));
  }
  if (store->info().n_documents == 0) {
    fail(ErrorCode::kInvalidArgument, "none of the {} files in {} has text: nothing was added",
         grouped(counts.n_files + counts.n_binary_files + counts.n_unreadable_files),
         fmt::join(options.corpus.inputs, ", "));
  }
  if (options.json) {
    print_json(to_json(counts, store->info(), builder.seconds()));
  } else {
    print_text(counts, store->info(), builder.seconds());
  }
}

}  // namespace

void add_datastore_build_command(CLI::App& datastore) {
  auto options = std::make_shared<BuildOptions>();
  CLI::App* command = datastore.add_subcommand(
      "build", "Make a store of text files, or add some to it; nothing is added twice");
  command->add_option("store", options->store, "Folder of the store")->required();
  command->add_option("inputs", options->corpus.inputs, "Files, and folders with all files below them")
      ->required()
      ->take_all();
  CLI::Option* named = command->add_option("-m,--model", options->model,
                                           "Model whose tokens the store is for: a path or a name");
  add_hub_options(*command, options->hub, named->capture_default_str());
  command
      ->add_option("--jsonl", options->corpus.jsonl_fields,
                   "The inputs are JSONL: take the text of these fields (FIELD,FIELD)")
      ->delimiter(',')
      ->take_all();
  command->add_option("--ext", options->corpus.extensions, "Of folders only files that end so: py,md")
      ->delimiter(',')
      ->take_all();
  command
      ->add_option("--capacity", options->capacity_tokens,
                   "Tokens the store may hold (0: any number); it drops the oldest")
      ->check(CLI::NonNegativeNumber);
  add_segment_options(*command, options->segments);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options] { with_memory_advice([&] { build(*options); }); });
}

}  // namespace forerun
