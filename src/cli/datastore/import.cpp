// forerun datastore import: a datastore from an index of the SSSD library.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "cli/datastore/commands.h"
#include "cli/hub_model.h"
#include "cli/terminal/progress.h"
#include "core/error.h"
#include "core/hash.h"
#include "engine/model_names.h"
#include "retrieval/store/sssd_index.h"

namespace forerun {
namespace {

struct ImportOptions {
  std::string file;
  std::string store;
  std::string model{kDefaultModel};
  HubChoice hub;
  std::optional<int> separator;
  SegmentOptions segments;
};

uint64_t hash_of_chunk(std::span<const TokenId> tokens) {
  StableHash hash;
  hash.add(std::as_bytes(tokens));
  return hash.value();
}

std::optional<TokenId> separator_of(const ImportOptions& options, const Vocabulary& vocabulary) {
  if (!options.separator) return vocabulary.bos();
  const TokenId token{*options.separator};
  if (!vocabulary.contains(token)) {
    fail(ErrorCode::kInvalidArgument, "--separator: the vocabulary has no token {}", to_int(token));
  }
  return token;
}

// The first part of a text that is no longer than `max_tokens`, whole documents only.
std::span<const TokenId> first_part(std::span<const TokenId> text, int64_t max_tokens) {
  if (static_cast<int64_t>(text.size()) <= max_tokens) return text;
  auto end = static_cast<size_t>(max_tokens);
  while (text[end - 1] != Segment::kSeparator) --end;
  return text.first(end);
}

// The text of an index that a store does not have yet.
class IndexReader {
 public:
  struct Cut {
    std::optional<TokenId> separator;
    int64_t segment_tokens;
  };
  IndexReader(SssdIndex& index, const Datastore& store, const Cut& cut)
      : index_(index), store_(store), cut_(cut) {}

  int64_t n_tokens() const { return n_tokens_; }

  // Of no more than a segment; nullopt: that was all.
  std::optional<SourcedText> next() {
    while (rest_.empty()) {
      const auto chunk = index_.next_chunk();
      if (!chunk) return std::nullopt;
      progress_.show(index_.share_read());
      const uint64_t hash = hash_of_chunk(*chunk);
      if (store_.has_source(hash) || !seen_.insert(hash).second) continue;
      // A document must leave room for its end.
      documents_ = without_kept(documents_between(*chunk, cut_.separator, cut_.segment_tokens - 1));
      rest_ = documents_;
      if (rest_.empty()) return SourcedText{{}, {hash}};
      hash_ = hash;
    }
    const auto part = first_part(rest_, cut_.segment_tokens);
    rest_ = rest_.subspan(part.size());
    n_tokens_ += static_cast<int64_t>(part.size());
    SourcedText text{{part.begin(), part.end()}, {}};
    if (rest_.empty()) text.sources = {hash_};
    return text;
  }

 private:
  std::vector<TokenId> without_kept(const std::vector<TokenId>& text) const {
    std::vector<TokenId> missing;
    for (auto begin = text.begin(); begin != text.end();) {
      const auto end = std::find(begin, text.end(), Segment::kSeparator);
      if (!store_.was_kept({begin, end})) missing.insert(missing.end(), begin, end + 1);
      begin = end + 1;
    }
    return missing;
  }

  SssdIndex& index_;
  const Datastore& store_;
  const Cut cut_;
  WorkProgress progress_{"importing"};
  std::unordered_set<uint64_t> seen_;
  std::vector<TokenId> documents_;  // of the chunk that was read last
  std::span<const TokenId> rest_;   // of them
  uint64_t hash_ = 0;               // of the chunk
  int64_t n_tokens_ = 0;
};

void import_index(const ImportOptions& options) {
  const Vocabulary vocabulary = load_vocabulary(chosen_model(options.model, options.hub));
  SssdIndex index(options.file, identity_of(vocabulary).n_vocab);
  StoreOptions store_options = options.segments.store_options();
  store_options.identity = identity_of(vocabulary);
  const CommandStore store(options.store, store_options);
  IndexReader reader(index, *store,
                     {separator_of(options, vocabulary), options.segments.segment_tokens});
  const Effort effort{.n_threads = options.segments.threads()};
  store->add_texts([&] { return reader.next(); }, effort);
  if (store->info().n_documents == 0) {
    fail(ErrorCode::kInvalidArgument, "{} has no text: nothing was imported", options.file);
  }
  try {
    store->tidy(effort);
  } catch (const Error& error) {
    // All of the text is there, and the next to write to the store merges it.
    std::fprintf(stderr, "forerun: %s\n", error.what());
  }
  std::printf("added %s tokens; %s: %s documents, %s tokens\n", grouped(reader.n_tokens()).c_str(),
              options.store.c_str(), grouped(store->info().n_documents).c_str(),
              grouped(store->info().n_tokens).c_str());
}

}  // namespace

void add_datastore_import_command(CLI::App& datastore) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command =
      datastore.add_subcommand("import", "Add the text of an index of the SSSD library (.idx)");
  command->add_option("file", options->file, "The index")->required();
  command->add_option("-o,--output", options->store, "Folder of the store")->required();
  CLI::Option* named = command->add_option("-m,--model", options->model,
                                           "Model that the index was made for: a path or a name");
  add_hub_options(*command, options->hub, named->capture_default_str());
  command->add_option("--separator", options->separator,
                      "Token between documents (default: the one that begins texts)");
  add_segment_options(*command, options->segments);
  command->callback([options] { with_memory_advice([&] { import_index(*options); }); });
}

}  // namespace forerun
