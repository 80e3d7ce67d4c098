#include "api/speculator.h"

#include <algorithm>
#include <utility>

#include "api/checked_options.h"
#include "core/error.h"
#include "core/hash.h"
#include "cost/known_costs.h"
#include "model/host_memory.h"
#include "plan/cost_planner.h"
#include "plan/learnt_file.h"
#include "plan/own_planner.h"
#include "plan/roofline.h"

namespace forerun {
namespace {

// What precedes an answer in the live datastore, so that its beginning is found.
constexpr size_t kKeptPromptTokens = 4;

// The bound on the size of drafts that `tree` says.
TreeSize tree_size(const TreeChoice& tree, const Speculator::Resources& resources) {
  if (tree.is_roofline) {
    const bool has_accelerator = !resources.executor.model().helping_device().is_host();
    return [&costs = std::as_const(resources.costs), has_accelerator](int n_requests) {
      return roofline_nodes(costs, has_accelerator, n_requests);
    };
  }
  return [n = tree.n_nodes](int) { return n; };
}

// What chances of drafts depend on, the text aside.
uint64_t learnt_key(const SpeculationOptions& options, Executor& executor) {
  StableHash hash;
  hash.add(CostKey::of(executor).key);
  hash.add(options.method);
  for (const auto& [name, value] : options.options) {
    hash.add(name);
    hash.add(value);
  }
  return hash.value();
}

}  // namespace

Speculator::Speculator(const SpeculationOptions& options, const Resources& resources)
    : warn_(resources.warn),
      // Texts and states of requests need memory too.
      preload_({.max_bytes = static_cast<int64_t>(available_host_memory() / 2)}) {
  const SpeculationChoice choice = parse_speculation(options);
  accept_ = choice.accept;
  needs_answers_ = choice.needs_answers;
  open_stores(options, resources.vocabulary);
  if (options.method == "none") return;
  for (const auto& store : stores_) preload_.add(*store->snapshot());
  preload_.start();
  const DraftResources draft_resources{.segments = [this] { return segments(); },
                                       .executor = &resources.executor,
                                       .costs = &resources.costs,
                                       .draft_model = resources.draft_model,
                                       .warn = warn_};
  DrafterSet drafters = make_drafters(options.method, choice.method_options, draft_resources);
  if (resources.executor.min_rows() > 1 && find_method(options.method).needs_trees) {
    fail(ErrorCode::kInvalidArgument,
         "exact text on this GPU leaves no room for the trees of {}: choose another method, or "
         "--no-exact",
         options.method);
  }
  TreeSize size = tree_size(choice.tree, resources);
  if (choice.plans_by_cost) {
    planner_ = std::make_unique<CostPlanner>(
        std::move(drafters), resources.costs, std::move(size),
        [&device = resources.executor.model().helping_device()](size_t n, const auto& f) {
          device.share_out(n, [&](int /*thread*/, size_t i) { f(i); });
        });
  } else {
    planner_ = std::make_unique<OwnPlanner>(std::move(drafters), std::move(size));
  }
  learnt_key_ = learnt_key(options, resources.executor);
  planner_->restore(load_learnt(learnt_folder(), learnt_key_));
}

Speculator::~Speculator() {
  if (planner_ == nullptr) return;
  const Learnt learnt = planner_->learnt();
  if (learnt.acceptance.empty()) return;
  try {
    save_learnt(learnt_folder(), learnt_key_, learnt);
  } catch (const Error&) {
    // Where the folder cannot be written, the next run learns it again.
  }
}

Speculation Speculator::speculation() {
  Speculation speculation{.planner = planner_.get(), .accept = accept_};
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
  if (stores_.size() == 1) return preload_.ready(stores_.front()->snapshot());
  auto all = std::make_shared<SegmentList>();
  for (const auto& store : stores_) {
    const auto segments = store->snapshot();
    all->insert(all->end(), segments->begin(), segments->end());
  }
  return preload_.ready(std::move(all));
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
