// forerun datastore query: what follows a text, wherever a store has it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/datastore/commands.h"
#include "cli/hub_model.h"
#include "cli/output.h"
#include "core/error.h"
#include "engine/model_names.h"
#include "retrieval/continuation_search.h"
#include "text/utf8.h"

namespace forerun {
namespace {

struct QueryOptions {
  std::string store;
  std::string text;
  std::string model{kDefaultModel};
  HubChoice hub;
  int max_prefix = 8;
  int length = 8;
  int top = 10;
  bool json = false;
};

// What is sampled; the counts shown are exact.
constexpr int kSamples = 1000;
// A continuation goes on while one token follows more often than all others.
constexpr float kMajority = 0.5f;

using Tokens = std::vector<TokenId>;

int64_t count(const SegmentList& segments, std::span<const TokenId> tokens) {
  int64_t n = 0;
  for (const auto& segment : segments) n += segment->find(tokens).size();
  return n;
}

// The longest end of the text that the store has.
Tokens longest_match(const SegmentList& segments, std::span<const TokenId> text, int max_prefix) {
  for (size_t n = std::min(text.size(), static_cast<size_t>(max_prefix)); n > 0; --n) {
    if (count(segments, text.last(n)) > 0)
      return {text.end() - static_cast<std::ptrdiff_t>(n), text.end()};
  }
  return {};
}

// Adds to `tokens` what most often follows a candidate.
void follow_majority(const ContinuationTrie& trie, uint64_t handle, Tokens& tokens) {
  while (true) {
    std::vector<Candidate> children;
    trie.children(handle, children);
    const auto best = std::max_element(children.begin(), children.end(),
                                       [](const auto& a, const auto& b) { return a.share < b.share; });
    if (best == children.end() || best->share <= kMajority) return;
    tokens.push_back(best->token);
    handle = best->handle;
  }
}

struct Continuation {
  Tokens tokens;
  int64_t n_first;  // places where the first token follows the match
  int64_t n_whole;  // places where all tokens do
};

std::vector<Continuation> continuations(const SegmentList& segments, const Tokens& match,
                                        const QueryOptions& options) {
  std::vector<const Segment*> pointers;
  for (const auto& segment : segments) pointers.push_back(segment.get());
  ContinuationSearch search(
      {.max_prefix = static_cast<int>(match.size()), .max_samples = kSamples, .min_samples = 1});
  const ContinuationTrie& trie = search.search(pointers, match, options.length);
  std::vector<Candidate> first;
  trie.children(ContinuationTrie::kRootHandle, first);
  std::vector<Continuation> found;
  for (const Candidate& candidate : first) {
    Continuation continuation{{candidate.token}, 0, 0};
    follow_majority(trie, candidate.handle, continuation.tokens);
    Tokens whole = match;
    whole.push_back(candidate.token);
    continuation.n_first = count(segments, whole);
    whole.insert(whole.end(), continuation.tokens.begin() + 1, continuation.tokens.end());
    continuation.n_whole = count(segments, whole);
    found.push_back(std::move(continuation));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.n_first > b.n_first; });
  if (found.size() > static_cast<size_t>(options.top)) found.resize(static_cast<size_t>(options.top));
  return found;
}

std::string text_of(const Tokens& tokens, const Vocabulary& vocabulary) {
  Utf8Stream utf8;
  std::string text;
  for (const TokenId token : tokens)
    text += utf8.push(vocabulary.piece(token, ControlTokens::kRendered));
  return text + utf8.flush();
}

std::vector<int> ids(const Tokens& tokens) {
  std::vector<int> result;
  for (const TokenId token : tokens) result.push_back(to_int(token));
  return result;
}

void query(const QueryOptions& options) {
  const Vocabulary vocabulary = load_vocabulary(chosen_model(options.model, options.hub));
  StoreOptions store_options;
  store_options.identity = identity_of(vocabulary);
  const auto store = Datastore::open(options.store, Datastore::Mode::kRead, store_options);
  const auto segments = store->snapshot();
  const Tokens text = vocabulary.tokenize(options.text, {.add_special = false, .parse_special = true});
  if (text.empty()) fail(ErrorCode::kInvalidArgument, "the text to look for is empty");
  const Tokens match = longest_match(*segments, text, options.max_prefix);
  const int64_t n_matches = match.empty() ? 0 : count(*segments, match);
  const auto found =
      match.empty() ? std::vector<Continuation>{} : continuations(*segments, match, options);

  if (options.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Continuation& entry : found) {
      list.push_back({{"tokens", ids(entry.tokens)},
                      {"text", text_of(entry.tokens, vocabulary)},
                      {"count", entry.n_first},
                      {"count_whole", entry.n_whole}});
    }
    print_json({{"match", ids(match)},
                {"match_text", text_of(match, vocabulary)},
                {"count", n_matches},
                {"continuations", list}});
    return;
  }
  const auto quoted = [&](const Tokens& tokens) {
    return nlohmann::ordered_json(text_of(tokens, vocabulary)).dump();
  };
  if (match.empty()) {
    std::printf("the store has no token of this text's end\n");
    return;
  }
  std::printf("%s (%zu of %zu tokens) occurs %s times and is followed by\n", quoted(match).c_str(),
              match.size(), text.size(), grouped(n_matches).c_str());
  for (const Continuation& entry : found) {
    std::printf("%12s  %5.1f %%  %s\n", grouped(entry.n_first).c_str(),
                100.0 * static_cast<double>(entry.n_first) / static_cast<double>(n_matches),
                quoted(entry.tokens).c_str());
  }
}

}  // namespace

void add_datastore_query_command(CLI::App& datastore) {
  constexpr int kMaxLength = Segment::kOrderDepth / 2;
  auto options = std::make_shared<QueryOptions>();
  CLI::App* command = datastore.add_subcommand(
      "query", "Show what follows a text in a store: how often, and the most likely words");
  command->add_option("store", options->store, "Folder of the store")->required();
  command->add_option("text", options->text, "The text; its last tokens are looked for")->required();
  CLI::Option* named = command->add_option("-m,--model", options->model,
                                           "Model whose tokens the store has: a path or a name");
  add_hub_options(*command, options->hub, named->capture_default_str());
  command->add_option("--prefix", options->max_prefix, "Tokens of the text to look for")
      ->check(CLI::Range(1, kMaxLength))
      ->capture_default_str();
  command->add_option("--length", options->length, "Tokens of a continuation to show")
      ->check(CLI::Range(1, kMaxLength))
      ->capture_default_str();
  command->add_option("--top", options->top, "Continuations to show")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options] { query(*options); });
}

}  // namespace forerun
