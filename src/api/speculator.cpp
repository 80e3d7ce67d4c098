#include "api/speculator.h"

#include <algorithm>
#include <charconv>

#include "budget/auto_budget.h"
#include "budget/roofline_budget.h"
#include "core/error.h"

namespace forerun {
namespace {

// What precedes an answer in the live datastore, so that its beginning is found.
constexpr size_t kKeptPromptTokens = 4;

std::optional<int> parse_size(const std::string& text) {
  int size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return size >= 1 && size <= kLargestTree ? std::optional(size) : std::nullopt;
}

std::unique_ptr<TreeBudget> make_budget(const std::string& tree,
                                        const Speculator::Resources& resources) {
  if (tree == "own") return std::make_unique<FixedBudget>(kLargestTree);
  if (const auto size = parse_size(tree)) return std::make_unique<FixedBudget>(*size);
  if (tree != "auto" && tree != "roofline") {
    fail(ErrorCode::kInvalidArgument,
         "the size of drafts (--tree) must be auto, roofline, own or a number from 1 to {}, not '{}'",
         kLargestTree, tree);
  }
  const CostCurve& curve = resources.costs().curve;
  if (tree == "auto") return std::make_unique<AutoBudget>(curve, AutoBudget::Options{});
  return std::make_unique<RooflineBudget>(curve, !resources.executor.model().device().is_host());
}

}  // namespace

Speculator::Speculator(const SpeculationOptions& options, const Resources& resources)
    : warn_(resources.warn) {
  const auto accept = parse_accept_rule(options.accept);
  if (!accept) {
    fail(ErrorCode::kInvalidArgument,
         "drafts are accepted by match, target, leviathan or rejection, not by '{}'", options.accept);
  }
  accept_ = *accept;
  open_stores(options, resources.vocabulary);
  MethodOptions method_options;
  for (const auto& [name, value] : options.options) set_method_option(method_options, name, value);
  if (options.method == "none") return;
  needs_answers_ = method_options.lookahead.needs_answers();
  if (needs_answers_ && accept_ != AcceptRule::kMatch) {
    fail(ErrorCode::kInvalidArgument,
         "the lookahead oracle knows the text of plain decoding: accept drafts by match");
  }
  const DraftResources draft_resources{.segments = [this] { return segments(); },
                                       .n_vocab = static_cast<int>(resources.vocabulary.n_tokens()),
                                       .executor = &resources.executor,
                                       .costs = resources.costs,
                                       .seed = 0,
                                       .draft_model = resources.draft_model,
                                       .warn = warn_};
  method_ = make_method(options.method, method_options, draft_resources);
  if (resources.executor.min_rows() > 1 && method_->needs_trees()) {
    fail(ErrorCode::kInvalidArgument,
         "exact text on a GPU leaves no room for the trees of {}: choose another method",
         options.method);
  }
  const bool sizes_itself = options.method != "auto" && options.method != "sssd";
  const std::string usual = sizes_itself ? "own" : "auto";
  budget_ = make_budget(options.tree.empty() ? usual : options.tree, resources);
}

Speculation Speculator::speculation() {
  Speculation speculation{.method = method_.get(), .budget = budget_.get(), .accept = accept_};
  if (live_ != nullptr) {
    speculation.on_answer = [this](std::span<const TokenId> prompt, std::span<const TokenId> answer) {
      keep(prompt, answer);
    };
  }
  return speculation;
}

void Speculator::open_stores(const SpeculationOptions& options, const Vocabulary& vocabulary) {
  const StoreOptions store_options{
      .identity = Segment::Identity{.tokenizer = vocabulary.fingerprint(),
                                    .n_vocab = static_cast<int>(vocabulary.n_tokens())},
      .on_problem = warn_};
  for (const auto& path : options.datastores) {
    try {
      stores_.push_back(Datastore::open(path, Datastore::Mode::kRead, store_options));
    } catch (const Error& error) {
      // Only the user can say which store was meant.
      if (error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kInvalidArgument) throw;
      warn(fmt::format("{}; answering without this datastore", error.what()));
    }
  }
  if (!options.live_datastore.empty()) open_live_store(options.live_datastore, store_options);
}

void Speculator::open_live_store(const std::filesystem::path& path, const StoreOptions& options) {
  std::string problem;
  try {
    stores_.push_back(Datastore::open(path, Datastore::Mode::kCreate, options));
    live_ = stores_.back().get();
    return;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) throw;  // it is no store of this vocabulary
    problem = error.what();
  }
  try {
    stores_.push_back(Datastore::open(path, Datastore::Mode::kRead, options));
    warn(fmt::format("{}; drafting from it, but adding nothing", problem));
  } catch (const Error&) {
    warn(fmt::format("{}; answering without this datastore", problem));
  }
}

void Speculator::warn(const std::string& message) const {
  if (warn_) warn_(message);
}

std::shared_ptr<const SegmentList> Speculator::segments() const {
  if (stores_.empty()) return nullptr;
  if (stores_.size() == 1) return stores_.front()->snapshot();
  auto all = std::make_shared<SegmentList>();
  for (const auto& store : stores_) {
    const auto segments = store->snapshot();
    all->insert(all->end(), segments->begin(), segments->end());
  }
  return all;
}

void Speculator::keep(std::span<const TokenId> prompt, std::span<const TokenId> answer) {
  if (answer.empty()) return;
  const auto before = prompt.last(std::min(prompt.size(), kKeptPromptTokens));
  std::vector<TokenId> document(before.begin(), before.end());
  document.insert(document.end(), answer.begin(), answer.end());
  try {
    live_->add(document);
  } catch (const Error& error) {
    warn(error.what());
  }
}

}  // namespace forerun
