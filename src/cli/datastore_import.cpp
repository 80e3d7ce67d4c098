// forerun datastore import: a datastore from an index of the SSSD library.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "cli/datastore_commands.h"
#include "cli/datastore_progress.h"
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

void import_index(const ImportOptions& options) {
  const Vocabulary vocabulary = load_vocabulary(options.model);
  SssdIndex index(options.file, identity_of(vocabulary).n_vocab);
  const auto separator = separator_of(options, vocabulary);
  StoreOptions store_options = options.segments.store_options();
  store_options.identity = identity_of(vocabulary);
  const auto store = Datastore::open(options.store, Datastore::Mode::kCreate, store_options);

  WorkProgress progress("importing");
  const Effort effort{.n_threads = options.segments.threads()};
  int64_t n_tokens = 0;
  while (const auto chunk = index.next_chunk()) {
    const uint64_t hash = hash_of_chunk(*chunk);
    if (store->has_source(hash)) continue;
    // A document must leave room for its end.
    const auto documents = documents_between(*chunk, separator, options.segments.segment_tokens - 1);
    for (std::span<const TokenId> rest = documents; !rest.empty();) {
      const auto part = first_part(rest, options.segments.segment_tokens);
      rest = rest.subspan(part.size());
      const std::span<const uint64_t> sources(&hash, rest.empty() ? 1 : 0);
      store->add_text({part.begin(), part.end()}, sources, effort);
      n_tokens += static_cast<int64_t>(part.size());
    }
    progress.show(index.share_read());
  }
  store->tidy(effort);
  std::printf("added %s tokens; %s: %s documents, %s tokens\n", grouped(n_tokens).c_str(),
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
  command
      ->add_option("-m,--model", options->model, "Model that the index was made for: a path or a name")
      ->capture_default_str();
  command->add_option("--separator", options->separator,
                      "Token between documents (default: the one that begins texts)");
  add_segment_options(*command, options->segments);
  command->callback([options] { with_memory_advice([&] { import_index(*options); }); });
}

}  // namespace forerun
