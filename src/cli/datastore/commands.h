// The commands below `forerun datastore`, and what they share.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "core/grouped.h"
#include "retrieval/segment.h"
#include "retrieval/store/datastore.h"
#include "text/vocabulary.h"

namespace forerun {

void add_datastore_build_command(CLI::App& datastore);
void add_datastore_import_command(CLI::App& datastore);
void add_datastore_query_command(CLI::App& datastore);

// A model's vocabulary; its weights are not touched.
Vocabulary load_vocabulary(const std::string& model);
Segment::Identity identity_of(const Vocabulary& vocabulary);

// Options of commands that make segments.
struct SegmentOptions {
  int64_t segment_tokens = StoreOptions{}.max_segment_tokens;
  int n_threads = 0;  // 0: one per core

  int threads() const;
  // A store that is changed only by this command.
  StoreOptions store_options() const;
};
void add_segment_options(CLI::App& command, SegmentOptions& options);

// A store that a command adds to. One that the command had to make and has put nothing into is
// removed again.
class CommandStore {
 public:
  // Throws what Datastore::open() throws.
  CommandStore(const std::filesystem::path& path, const StoreOptions& options);
  ~CommandStore();
  CommandStore(const CommandStore&) = delete;
  CommandStore& operator=(const CommandStore&) = delete;

  Datastore& operator*() const { return *store_; }
  Datastore* operator->() const { return store_.get(); }

 private:
  std::filesystem::path path_;
  bool made_folder_ = false;
  bool made_store_ = false;
  std::unique_ptr<Datastore> store_;
};

// Work with a line that shows how far it is.
Effort shown_effort(const SegmentOptions& options, const std::string& what);
// Runs `command`; where memory runs out, the Error says what to change.
void with_memory_advice(const std::function<void()>& command);

std::string megabytes(int64_t n_bytes);

}  // namespace forerun
