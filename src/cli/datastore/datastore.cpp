// forerun datastore: stores of text that drafts come from.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "cli/commands.h"
#include "cli/datastore/commands.h"
#include "cli/output.h"
#include "cli/terminal/progress.h"
#include "core/cpu_topology.h"
#include "core/error.h"
#include "engine/model_names.h"
#include "gguf/gguf_file.h"
#include "retrieval/store/merge_policy.h"
#include "retrieval/store/segment_texts.h"
#include "retrieval/store/store_check.h"

namespace forerun {
namespace {

using Mode = Datastore::Mode;

struct StoreCommand {
  std::string store;
  std::vector<std::string> stores;
  std::string output;
  SegmentOptions segments;
  bool repair = false;
  bool json = false;
};

void row(const char* name, const std::string& value) {
  std::printf("%-14s %s\n", name, value.c_str());
}

nlohmann::ordered_json info_json(const StoreInfo& info) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const auto& file : info.files) {
    files.push_back({{"name", file.name},
                     {"tokens", file.n_tokens},
                     {"documents", file.n_documents},
                     {"bytes", file.n_bytes}});
  }
  return {{"path", info.path.string()},
          {"version", Manifest::kVersion},
          {"tokenizer", fmt::format("{:016x}", info.identity.tokenizer)},
          {"n_vocab", info.identity.n_vocab},
          {"capacity_tokens", info.capacity_tokens},
          {"tokens", info.n_tokens},
          {"documents", info.n_documents},
          {"live_tokens", info.n_live_tokens},
          {"live_documents", info.n_live_documents},
          {"size_bytes", info.n_bytes},
          {"segments", files}};
}

void info(const StoreCommand& options) {
  const StoreInfo info = Datastore::open(options.store, Mode::kRead, {})->info();
  if (options.json) {
    print_json(info_json(info));
    return;
  }
  row("store", fmt::format("{} ({})", info.path.string(), megabytes(info.n_bytes)));
  row("tokenizer",
      fmt::format("{:016x}, {} tokens", info.identity.tokenizer, grouped(info.identity.n_vocab)));
  row("documents", grouped(info.n_documents));
  row("tokens",
      fmt::format(
          "{}{}", grouped(info.n_tokens),
          info.capacity_tokens > 0 ? fmt::format(" of at most {}", grouped(info.capacity_tokens)) : ""));
  row("live", fmt::format("{} documents, {} tokens in the journal", grouped(info.n_live_documents),
                          grouped(info.n_live_tokens)));
  for (const auto& file : info.files) {
    row(&file == info.files.data() ? "segments" : "",
        fmt::format("{}: {} documents, {} tokens, {}", file.name, grouped(file.n_documents),
                    grouped(file.n_tokens), megabytes(file.n_bytes)));
  }
}

void verify(const StoreCommand& options) {
  WorkProgress progress("reading");
  const CheckProgress show = [&](double share) { progress.show(share); };
  const StoreReport report =
      options.repair ? repair_store(options.store, show) : verify_store(options.store, show);
  if (options.repair) {
    for (const std::string& problem : report.problems) std::printf("repaired: %s\n", problem.c_str());
  }
  for (const std::string& note : report.notes) std::printf("note: %s\n", note.c_str());
  if (report.n_lost_documents > 0) {
    std::printf(
        "lost: %s documents; building the store again from the same files adds what is missing\n",
        grouped(report.n_lost_documents).c_str());
  }
  if (!options.repair && !report.problems.empty()) {
    fail(ErrorCode::kInvalidFile, "{}{}; 'forerun datastore verify --repair {}' keeps what is whole",
         report.problems[0],
         report.problems.size() > 1 ? fmt::format(" (and {} more)", report.problems.size() - 1) : "",
         options.store);
  }
  std::printf("%s is whole: %d segments, %s documents, %s tokens\n", options.store.c_str(),
              report.n_segments, grouped(report.n_documents).c_str(), grouped(report.n_tokens).c_str());
}

void print_size(const Datastore& store) {
  const StoreInfo info = store.info();
  std::printf("%s: %s documents, %s tokens in %zu segments, %s\n", info.path.c_str(),
              grouped(info.n_documents).c_str(), grouped(info.n_tokens).c_str(), info.files.size(),
              megabytes(info.n_bytes).c_str());
}

void compact(const StoreCommand& options) {
  const auto store = Datastore::open(options.store, Mode::kWrite, options.segments.store_options());
  store->compact(shown_effort(options.segments, "merging"));
  print_size(*store);
}

// A new folder that appears only when it is complete.
class NewFolder {
 public:
  explicit NewFolder(std::filesystem::path path)
      : path_(std::move(path)), building_(path_.string() + ".part") {
    std::error_code ignored;
    if (std::filesystem::exists(path_, ignored)) {
      fail(ErrorCode::kInvalidArgument, "{} exists already: name a new folder", path_.string());
    }
    std::filesystem::remove_all(building_, ignored);
  }
  ~NewFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(building_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::filesystem::path& building() const { return building_; }
  void finish() {
    std::error_code error;
    std::filesystem::rename(building_, path_, error);
    if (error) fail(ErrorCode::kIo, "cannot make {}: {}", path_.string(), error.message());
  }

 private:
  std::filesystem::path path_;
  std::filesystem::path building_;
};

void merge(const StoreCommand& options) {
  SegmentList segments;
  std::vector<uint64_t> sources;
  StoreOptions reading;
  for (const std::string& path : options.stores) {
    const auto store = Datastore::open(path, Mode::kRead, reading);
    reading.identity = store->info().identity;  // the others must have it too
    const auto snapshot = store->snapshot();
    segments.insert(segments.end(), snapshot->begin(), snapshot->end());
    const auto more = store->sources();
    sources.insert(sources.end(), more.begin(), more.end());
  }
  NewFolder folder(options.output);
  {
    StoreOptions writing = options.segments.store_options();
    writing.identity = reading.identity;
    const auto merged = Datastore::open(folder.building(), Mode::kCreate, writing);
    const Effort effort = shown_effort(options.segments, "merging");
    size_t begin = 0;
    for (const size_t end : runs_up_to(sizes_of(segments), options.segments.segment_tokens)) {
      merged->add_text(concatenated_text(std::span(segments).subspan(begin, end - begin)), {}, effort);
      begin = end;
    }
    merged->add_text({}, sources, effort);
  }
  folder.finish();
  print_size(*Datastore::open(options.output, Mode::kRead, {}));
}

void add_store_argument(CLI::App& command, StoreCommand& options) {
  command.add_option("store", options.store, "Folder of the store")->required();
}

}  // namespace

Vocabulary load_vocabulary(const std::string& model) {
  const GgufFile file = GgufFile::open(resolve_model(model));
  return Vocabulary::load(file.metadata());
}

Segment::Identity identity_of(const Vocabulary& vocabulary) {
  return {vocabulary.fingerprint(), static_cast<int>(vocabulary.n_tokens())};
}

int SegmentOptions::threads() const {
  return n_threads > 0 ? n_threads : cpu_topology().n_cores;
}

StoreOptions SegmentOptions::store_options() const {
  StoreOptions options;
  options.max_segment_tokens = segment_tokens;
  options.background = false;
  return options;
}

void add_segment_options(CLI::App& command, SegmentOptions& options) {
  constexpr int kMaxThreads = 512;
  command
      .add_option("--segment-tokens", options.segment_tokens,
                  "Tokens of a segment at most; making one takes 12 bytes of memory for each")
      ->check(CLI::Range(int64_t{1024}, Segment::kMaxTokens))
      ->capture_default_str();
  command.add_option("-t,--threads", options.n_threads, "Threads (default: one per core)")
      ->check(CLI::Range(1, kMaxThreads));
}

Effort shown_effort(const SegmentOptions& options, const std::string& what) {
  auto progress = std::make_shared<WorkProgress>(what);
  return {.n_threads = options.threads(), .progress = [progress](double share) {
            progress->show(share);
            return true;
          }};
}

CommandStore::CommandStore(const std::filesystem::path& path, const StoreOptions& options)
    : path_(path) {
  std::error_code ignored;
  made_folder_ = !std::filesystem::exists(path, ignored);
  made_store_ = !Datastore::exists(path);
  store_ = Datastore::open(path, Mode::kCreate, options);
}

CommandStore::~CommandStore() {
  if (!made_store_ || store_->info().n_documents > 0) return;
  // Before the store is closed, so that nobody begins to write to it meanwhile.
  std::error_code ignored;
  for (const std::filesystem::path& file : store_->files()) std::filesystem::remove(file, ignored);
  if (made_folder_) std::filesystem::remove(path_, ignored);
}

void with_memory_advice(const std::function<void()>& command) {
  try {
    command();
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kOutOfMemory,
         "not enough memory to index so much text at once: use a smaller --segment-tokens");
  }
}

std::string megabytes(int64_t n_bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(n_bytes) / 1e6);
}

void add_datastore_command(CLI::App& app) {
  auto options = std::make_shared<StoreCommand>();
  CLI::App* datastore =
      app.add_subcommand("datastore", "Make and look after stores of text to draft from");
  datastore->require_subcommand(1);
  add_datastore_build_command(*datastore);

  CLI::App* info_command = datastore->add_subcommand("info", "Show what a store holds");
  add_store_argument(*info_command, *options);
  info_command->add_flag("--json", options->json, "Print one JSON object");
  info_command->callback([options] { info(*options); });

  add_datastore_query_command(*datastore);

  CLI::App* merge_command =
      datastore->add_subcommand("merge", "Make a new store of several, oldest first");
  merge_command->add_option("stores", options->stores, "Folders of the stores")->required()->take_all();
  merge_command->add_option("-o,--output", options->output, "Folder of the new store")->required();
  add_segment_options(*merge_command, options->segments);
  merge_command->callback([options] { with_memory_advice([&] { merge(*options); }); });

  CLI::App* compact_command =
      datastore->add_subcommand("compact", "Merge a store into as few segments as possible");
  add_store_argument(*compact_command, *options);
  add_segment_options(*compact_command, options->segments);
  compact_command->callback([options] { with_memory_advice([&] { compact(*options); }); });

  CLI::App* verify_command =
      datastore->add_subcommand("verify", "Read all of a store and compare it with its checksums");
  add_store_argument(*verify_command, *options);
  verify_command->add_flag("--repair", options->repair, "Keep what is whole and drop what is damaged");
  verify_command->callback([options] { verify(*options); });

  add_datastore_import_command(*datastore);
}

}  // namespace forerun
