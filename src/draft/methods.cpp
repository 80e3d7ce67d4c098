#include "draft/methods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "draft/hybrid.h"
#include "draft/mixed.h"
#include "draft/rivals.h"

namespace forerun {
namespace {

class NoDrafter : public Drafter {
 public:
  void draft(const DraftLimits& /*limits*/, DraftTree& /*tree*/) override {}
  void append(std::span<const TokenId> /*tokens*/) override {}
};

class NoMethod : public DraftMethod {
 public:
  std::unique_ptr<Drafter> begin(std::span<const TokenId> /*prompt*/) override {
    return std::make_unique<NoDrafter>();
  }
};

template <auto kOptions>
void describe(MethodOptions& options, OptionVisitor& visitor) {
  (options.*kOptions).describe(visitor);
}

Executor& executor_of(const DraftResources& resources) {
  CHECK(resources.executor != nullptr);
  return *resources.executor;
}

// `draft` is the model that drafts. `cost` is asked for where it is needed: it may have to be
// measured.
DraftControl control_of(const MethodOptions& options, const DraftResources& resources,
                        const Model& draft, const std::function<DraftCost()>& cost) {
  const ModelPair models{.target = executor_of(resources).model().fingerprint(),
                         .draft = draft.fingerprint()};
  DraftControl control{
      .lookahead = make_lookahead(options.lookahead, {.costs = resources.costs, .models = models})};
  if (resources.gates || options.lookahead.needs_costs()) control.cost = cost();
  if (resources.gates) control.gate = std::make_unique<DraftGate>(resources.costs(), *control.cost);
  return control;
}

std::unique_ptr<DraftMethod> make_self(const MethodOptions& all, const ChainOptions& options,
                                       const DraftResources& resources,
                                       std::unique_ptr<LayerSelector> selector) {
  return std::make_unique<SelfMethod>(options, executor_of(resources), std::move(selector),
                                      control_of(all, resources, executor_of(resources).model(),
                                                 [&] { return self_draft_cost(resources.costs()); }));
}

std::unique_ptr<DraftMethod> make_draft(const MethodOptions& options, const DraftResources& resources) {
  if (options.draft.choice.model.empty()) {
    fail(ErrorCode::kInvalidArgument,
         "draft needs a second, smaller model with the same vocabulary: --draft-model FILE");
  }
  CHECK(resources.draft_model != nullptr);
  std::shared_ptr<DraftModel> draft = resources.draft_model(options.draft.choice);
  DraftControl control =
      control_of(options, resources, *draft->model, [&] { return draft_model_cost(*draft); });
  return std::make_unique<DraftModelMethod>(options.draft.draft, std::move(draft), std::move(control));
}

// A method whose layers `Selector` chooses.
template <typename Selector, auto kOptions>
std::unique_ptr<DraftMethod> make_self(const MethodOptions& options, const DraftResources& resources) {
  const auto& chosen = options.*kOptions;
  return make_self(options, chosen.draft, resources,
                   std::make_unique<Selector>(chosen.layers, executor_of(resources), resources.costs()));
}

// Of the time, for choosing layers, where it may be in vain.
constexpr double kLargestShare = 0.005;

// What `auto` drafts with: continuations from the text and from datastores, those of the
// longest match in the text, a smaller model, if the user names one, and the model itself. Which of them
// pay is for the budget and the gate to say.
std::unique_ptr<DraftMethod> make_auto(const MethodOptions& given, const DraftResources& resources) {
  MethodOptions options = given;
  // More than its authors draft: the budget prunes. Answers are kept in datastores, if the
  // user names one, and not here.
  options.suffix.factor = 4.0;
  options.suffix.offset = 4.0;
  options.suffix.max_answers = 0;
  DraftMethods texts;
  texts.push_back(make_method("sssd", options, resources));
  texts.push_back(make_method("suffix", options, resources));
  auto mixed = std::make_unique<MixedMethod>(std::move(texts));
  const bool drafts_itself = given.automatic.layers != "none";
  if (!drafts_itself && given.draft.choice.model.empty()) return mixed;
  for (double* share : {&options.swift.layers.share, &options.knapspec.layers.when.share,
                        &options.clasp.layers.when.share, &options.del.layers.when.share}) {
    *share = std::min(*share, kLargestShare);
  }
  DraftResources gated = resources;
  gated.gates = true;
  DraftMethods models;
  if (!given.draft.choice.model.empty()) {
    MethodOptions with_model = options;
    if (given.lookahead.policy == "own") with_model.lookahead.policy = "cost";
    models.push_back(make_method("draft", with_model, gated));
    // A classifier is for one drafter.
    if (given.lookahead.policy == "disco") options.lookahead.policy = "own";
  }
  if (drafts_itself) models.push_back(make_method(given.automatic.layers, options, gated));
  return std::make_unique<HybridMethod>(
      std::move(mixed),
      models.size() == 1 ? std::move(models.front()) : std::make_unique<RivalsMethod>(std::move(models)),
      resources.costs());
}

constexpr auto kMethods = std::to_array<MethodInfo>({
    {"auto", "Whatever pays here, or nothing", describe<&MethodOptions::automatic>, make_auto,
     DraftsWith::kModels},
    {"none", "No drafts: one token per pass", [](MethodOptions&, OptionVisitor&) {},
     [](const MethodOptions&, const DraftResources&) -> std::unique_ptr<DraftMethod> {
       return std::make_unique<NoMethod>();
     }},
    {"pld", "Prompt lookup: what followed the last tokens earlier in the text",
     describe<&MethodOptions::pld>,
     [](const MethodOptions& options, const DraftResources&) -> std::unique_ptr<DraftMethod> {
       return std::make_unique<PldMethod>(options.pld);
     }},
    {"rest", "REST: what follows the last tokens in the datastore", describe<&MethodOptions::rest>,
     [](const MethodOptions& options, const DraftResources& resources) -> std::unique_ptr<DraftMethod> {
       return std::make_unique<RestMethod>(options.rest, resources.segments);
     }},
    {"pia", "PIA lookahead: branches of the prompt and of earlier answers",
     describe<&MethodOptions::pia>,
     [](const MethodOptions& options, const DraftResources&) -> std::unique_ptr<DraftMethod> {
       return std::make_unique<PiaMethod>(options.pia);
     }},
    {"jacobi", "Lookahead decoding: guesses that the model itself improves",
     describe<&MethodOptions::jacobi>,
     [](const MethodOptions& options, const DraftResources& resources) -> std::unique_ptr<DraftMethod> {
       return std::make_unique<JacobiMethod>(options.jacobi, resources.seed);
     }},
    {"sssd", "SSSD: what followed the last tokens in the text and in the datastore",
     describe<&MethodOptions::sssd>,
     [](const MethodOptions& options, const DraftResources& resources) -> std::unique_ptr<DraftMethod> {
       return std::make_unique<SssdMethod>(options.sssd, resources.segments);
     }},
    {"suffix", "SuffixDecoding: the likeliest continuation of the longest match",
     describe<&MethodOptions::suffix>,
     [](const MethodOptions& options, const DraftResources&) -> std::unique_ptr<DraftMethod> {
       return std::make_unique<SuffixMethod>(options.suffix);
     }},
    {"draft", "A smaller model (--draft-model)", describe<&MethodOptions::draft>, make_draft,
     DraftsWith::kModels},
    {"uniform", "The model itself with blocks left out, spread evenly",
     describe<&MethodOptions::uniform>,
     [](const MethodOptions& options, const DraftResources& resources) -> std::unique_ptr<DraftMethod> {
       const int n_layers = executor_of(resources).model().config().n_layers;
       return make_self(
           options, options.uniform.draft, resources,
           std::make_unique<FixedLayers>(uniform_layers(n_layers, options.uniform.layers.skip)));
     },
     DraftsWith::kLayers},
    {"selfsd", "Self-SD: the model itself with blocks left out, which were searched beforehand",
     describe<&MethodOptions::selfsd>,
     [](const MethodOptions& options, const DraftResources& resources) -> std::unique_ptr<DraftMethod> {
       const auto& [layers, draft] = options.selfsd;
       return make_self(
           options, draft, resources,
           std::make_unique<SelfSdSelector>(layers, executor_of(resources).model(), draft.threshold));
     },
     DraftsWith::kLayers},
    {"swift", "SWIFT: the model itself with blocks left out, which are searched while it runs",
     describe<&MethodOptions::swift>,
     [](const MethodOptions& options, const DraftResources& resources) -> std::unique_ptr<DraftMethod> {
       return make_self(options, options.swift.draft, resources,
                        std::make_unique<SwiftSelector>(options.swift.layers, executor_of(resources),
                                                        resources.costs(), resources.warn));
     },
     DraftsWith::kLayers},
    {"knnssd", "KNN-SSD: the model itself with blocks left out, by what the prompt is about",
     describe<&MethodOptions::knnssd>,
     [](const MethodOptions& options, const DraftResources& resources) -> std::unique_ptr<DraftMethod> {
       return make_self(
           options, options.knnssd.draft, resources,
           std::make_unique<KnnSelector>(options.knnssd.layers, executor_of(resources).model()));
     },
     DraftsWith::kLayers},
    {"knapspec", "KnapSpec: the same, the blocks chosen as a knapsack of what they cost",
     describe<&MethodOptions::knapspec>, make_self<KnapSpecSelector, &MethodOptions::knapspec>,
     DraftsWith::kLayers},
    {"clasp", "CLaSp: whole layers left out, chosen on the latest token",
     describe<&MethodOptions::clasp>, make_self<ClaspSelector, &MethodOptions::clasp>,
     DraftsWith::kLayers},
    {"del", "DEL: the model left early, at the layer that was right most for its cost",
     describe<&MethodOptions::del>, make_self<DelSelector, &MethodOptions::del>, DraftsWith::kLayers},
});

// Hands options on with the method's name in front of theirs.
class Prefixed : public OptionVisitor {
 public:
  Prefixed(std::string_view method, OptionVisitor& visitor) : method_(method), visitor_(visitor) {}

  void visit(const OptionText& text, int& value, OptionRange<int> range) override {
    pass(text, value, range);
  }
  void visit(const OptionText& text, double& value, OptionRange<double> range) override {
    pass(text, value, range);
  }
  void visit(const OptionText& text, bool& value) override { pass(text, value); }
  void visit(const OptionText& text, std::string& value,
             std::span<const std::string_view> choices) override {
    pass(text, value, choices);
  }

 private:
  template <typename... Args>
  void pass(const OptionText& text, Args&&... args) {
    const std::string name = fmt::format("{}-{}", method_, text.name);
    visitor_.visit({.name = name, .help = text.help}, std::forward<Args>(args)...);
  }

  std::string_view method_;
  OptionVisitor& visitor_;
};

// Throws for a value that is out of range.
class Checking : public OptionVisitor {
 public:
  void visit(const OptionText& text, int& value, OptionRange<int> range) override {
    check(text, value, range);
  }
  void visit(const OptionText& text, double& value, OptionRange<double> range) override {
    check(text, value, range);
  }
  void visit(const OptionText& /*text*/, bool& /*value*/) override {}
  void visit(const OptionText& text, std::string& value,
             std::span<const std::string_view> choices) override {
    if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end()) return;
    fail(ErrorCode::kInvalidArgument, "{} is '{}': choose one of {}", text.name, value,
         fmt::join(choices, ", "));
  }

 private:
  template <typename Number>
  static void check(const OptionText& text, Number value, OptionRange<Number> range) {
    if (value >= range.min && value <= range.max) return;
    fail(ErrorCode::kInvalidArgument, "{} is {}: choose a number from {} to {}", text.name, value,
         range.min, range.max);
  }
};

// Sets the option of one name.
class Setting : public OptionVisitor {
 public:
  Setting(std::string_view name, std::string_view value) : name_(name), value_(value) {}
  bool done() const { return done_; }

  void visit(const OptionText& text, int& value, OptionRange<int> range) override {
    set(text, value, range);
  }
  void visit(const OptionText& text, double& value, OptionRange<double> range) override {
    set(text, value, range);
  }
  void visit(const OptionText& text, bool& value) override {
    if (!is_it(text)) return;
    if (value_ != "true" && value_ != "false") {
      fail(ErrorCode::kInvalidArgument, "{} is '{}': choose true or false", name_, value_);
    }
    value = value_ == "true";
  }
  void visit(const OptionText& text, std::string& value,
             std::span<const std::string_view> choices) override {
    if (!is_it(text)) return;
    std::string chosen(value_);
    Checking().visit(text, chosen, choices);
    value = std::move(chosen);
  }

 private:
  bool is_it(const OptionText& text) {
    const bool it = text.name == name_;
    done_ |= it;
    return it;
  }

  template <typename Number>
  void set(const OptionText& text, Number& value, OptionRange<Number> range) {
    if (!is_it(text)) return;
    Number number{};
    const char* const end = value_.data() + value_.size();
    const auto result = std::from_chars(value_.data(), end, number);
    if (result.ec != std::errc{} || result.ptr != end) {
      fail(ErrorCode::kInvalidArgument, "{} is '{}': choose a number from {} to {}", name_, value_,
           range.min, range.max);
    }
    Checking().visit(text, number, range);
    value = number;
  }

  std::string_view name_;
  std::string_view value_;
  bool done_ = false;
};

// Whether there is an option of that name.
class Finding : public OptionVisitor {
 public:
  explicit Finding(std::string_view name) : name_(name) {}
  bool found() const { return found_; }

  void visit(const OptionText& text, int&, OptionRange<int>) override { look(text); }
  void visit(const OptionText& text, double&, OptionRange<double>) override { look(text); }
  void visit(const OptionText& text, bool&) override { look(text); }
  void visit(const OptionText& text, std::string&, std::span<const std::string_view>) override {
    look(text);
  }

 private:
  void look(const OptionText& text) { found_ |= text.name == name_; }

  std::string_view name_;
  bool found_ = false;
};

}  // namespace

std::span<const MethodInfo> draft_methods() {
  return kMethods;
}

void AutoOptions::describe(OptionVisitor& visitor) {
  std::vector<std::string_view> choices{"none"};
  for (const MethodInfo& method : kMethods) {
    if (method.drafts_with == DraftsWith::kLayers) choices.push_back(method.name);
  }
  visitor.visit({.name = "layers", .help = "How the model itself drafts where that pays"}, layers,
                choices);
}

void DraftModelOptions::describe(OptionVisitor& visitor) {
  visitor.visit({.name = "model", .help = "The model that drafts: path or name of a GGUF file"},
                choice.model, {});
  visitor.visit({.name = "device", .help = "Where it computes: same, or as --device"}, choice.device,
                {});
  draft.describe(visitor);
}

void UniformOptions::describe(OptionVisitor& visitor) {
  visitor.visit({.name = "skip", .help = "Share of the blocks left out"}, skip, {0.0, 1.0});
}

void MethodOptions::describe(OptionVisitor& visitor) {
  lookahead.describe(visitor);
  for (const MethodInfo& method : kMethods) {
    Prefixed prefixed(method.name, visitor);
    method.describe(*this, prefixed);
  }
}

const MethodInfo& find_method(std::string_view name) {
  std::vector<std::string_view> names;
  for (const MethodInfo& method : kMethods) {
    if (method.name == name) return method;
    names.push_back(method.name);
  }
  fail(ErrorCode::kInvalidArgument, "there is no drafting method '{}': choose one of {}", name,
       fmt::join(names, ", "));
}

std::unique_ptr<DraftMethod> make_method(std::string_view name, const MethodOptions& options,
                                         const DraftResources& resources) {
  const MethodInfo& method = find_method(name);
  MethodOptions copy = options;
  Checking checking;
  Prefixed prefixed(method.name, checking);
  method.describe(copy, prefixed);
  copy.lookahead.describe(checking);
  return method.make(options, resources);
}

bool has_method_option(std::string_view name) {
  MethodOptions options;
  Finding finding(name);
  options.describe(finding);
  return finding.found();
}

void set_method_option(MethodOptions& options, std::string_view name, std::string_view value) {
  Setting setting(name, value);
  options.describe(setting);
  if (!setting.done()) fail(ErrorCode::kInvalidArgument, "there is no drafting option '{}'", name);
}

}  // namespace forerun
