#include "draft/methods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "core/check.h"
#include "core/error.h"

namespace forerun {
namespace {

template <auto kOptions>
void describe(MethodOptions& options, OptionVisitor& visitor) {
  (options.*kOptions).describe(visitor);
}

Executor& executor_of(const DraftResources& resources) {
  CHECK(resources.executor != nullptr);
  return *resources.executor;
}

std::unique_ptr<StoppingRule> stopping_of(const MethodOptions& options, const DraftResources& resources,
                                          const Model& draft) {
  return make_stopping_rule(options.stopping, {.target = executor_of(resources).model().fingerprint(),
                                               .draft = draft.fingerprint()});
}

std::unique_ptr<LayerSelector> make_uniform(const UniformOptions& options,
                                            const SelectorResources& resources) {
  const int n_layers = resources.executor.model().config().n_layers;
  return std::make_unique<FixedLayers>(uniform_layers(n_layers, options.skip));
}

// A method whose layers `kMake` chooses.
template <auto kMake, auto kOptions>
void add_layer_skipping(const MethodOptions& options, const DraftResources& resources,
                        DrafterSet& drafters) {
  CHECK(resources.costs != nullptr);
  Executor& executor = executor_of(resources);
  executor.model().require_blocks("drafting with layers left out");
  const auto& [choice, draft] = options.*kOptions;
  drafters.models.push_back(std::make_unique<LayerSkippingDrafter>(
      draft, executor, *resources.costs,
      kMake(choice, {executor, *resources.costs, draft.threshold, resources.warn}),
      stopping_of(options, resources, executor.model())));
}

// A drafter of texts.
template <typename TextDrafter, auto kOptions>
void add_text(const MethodOptions& options, const DraftResources& resources, DrafterSet& drafters) {
  if constexpr (std::is_constructible_v<TextDrafter, decltype(options.*kOptions), SegmentSource>) {
    drafters.texts.push_back(std::make_unique<TextDrafter>(options.*kOptions, resources.segments));
  } else {
    drafters.texts.push_back(std::make_unique<TextDrafter>(options.*kOptions));
  }
}

void add_draft_model(const MethodOptions& options, const DraftResources& resources,
                     DrafterSet& drafters) {
  CHECK(resources.draft_model != nullptr);
  std::shared_ptr<DraftModel> draft = resources.draft_model(options.draft.choice);
  auto stopping = stopping_of(options, resources, *draft->model);
  drafters.models.push_back(
      std::make_unique<DraftModelDrafter>(options.draft.draft, std::move(draft), std::move(stopping)));
}

template <typename Selector, typename Options>
std::unique_ptr<LayerSelector> make_selector(const Options& options,
                                             const SelectorResources& resources) {
  return std::make_unique<Selector>(options, resources);
}

void add_checked(std::string_view name, const MethodOptions& options, const DraftResources& resources,
                 DrafterSet& drafters) {
  check_method(name, options);
  find_method(name).add(options, resources, drafters);
}

// What `auto` drafts with: continuations from the text and from datastores, those of the
// longest match in the text, a smaller model, if the user names one, and the model itself. Which of them
// pay is for the planner to say.
void add_auto(const MethodOptions& given, const DraftResources& resources, DrafterSet& drafters) {
  // What a draft costs beyond its pass is not known there, and it is as much again.
  if (!executor_of(resources).limits().rolls_back) return;
  MethodOptions options = given;
  // More than its authors draft: the planner prunes. Answers are kept in datastores, if the
  // user names one, and not here.
  options.suffix.factor = 4.0;
  options.suffix.offset = 4.0;
  options.suffix.max_answers = 0;
  add_checked("sssd", options, resources, drafters);
  add_checked("suffix", options, resources, drafters);
  if (!given.draft.choice.model.empty()) {
    add_checked("draft", options, resources, drafters);
    // A classifier is for one drafter.
    if (given.stopping.rule == "disco") options.stopping.rule = "own";
  }
  if (given.automatic.layers != "none" && executor_of(resources).model().has_blocks()) {
    add_checked(given.automatic.layers, options, resources, drafters);
  }
}

template <typename TextDrafter, auto kOptions>
constexpr MethodInfo from_texts(std::string_view name, std::string_view summary) {
  return {name, summary, describe<kOptions>, add_text<TextDrafter, kOptions>};
}

template <auto kMake, auto kOptions>
constexpr MethodInfo by_layers(std::string_view name, std::string_view summary) {
  return {name, summary, describe<kOptions>, add_layer_skipping<kMake, kOptions>, DraftsWith::kLayers};
}

constexpr auto kMethods = std::to_array<MethodInfo>({
    {"auto", "Whatever pays here, or nothing", describe<&MethodOptions::automatic>, add_auto,
     DraftsWith::kModels, /*plans_by_cost=*/true, /*drafts_with_many=*/true},
    {"none", "No drafts: one token per pass", [](MethodOptions&, OptionVisitor&) {},
     [](const MethodOptions&, const DraftResources&, DrafterSet&) {}},
    from_texts<PldDrafter, &MethodOptions::pld>(
        "pld", "Prompt lookup: what followed the last tokens earlier in the text"),
    from_texts<RestDrafter, &MethodOptions::rest>("rest",
                                                  "REST: what follows the last tokens in the datastore"),
    from_texts<PiaDrafter, &MethodOptions::pia>(
        "pia", "PIA lookahead: branches of the prompt and of earlier answers"),
    {"jacobi", "Lookahead decoding: guesses that the model itself improves",
     describe<&MethodOptions::jacobi>, add_text<JacobiDrafter, &MethodOptions::jacobi>,
     DraftsWith::kTexts,
     /*plans_by_cost=*/false, /*drafts_with_many=*/false, /*needs_trees=*/true},
    {"sssd", "SSSD: what followed the last tokens in the text and in the datastore",
     describe<&MethodOptions::sssd>, add_text<SssdDrafter, &MethodOptions::sssd>, DraftsWith::kTexts,
     /*plans_by_cost=*/true},
    from_texts<SuffixDrafter, &MethodOptions::suffix>(
        "suffix", "SuffixDecoding: the likeliest continuation of the longest match"),
    {"draft", "A smaller model (--draft-model)", describe<&MethodOptions::draft>, add_draft_model,
     DraftsWith::kModels},
    by_layers<make_uniform, &MethodOptions::uniform>(
        "uniform", "The model itself with blocks left out, spread evenly"),
    by_layers<make_selfsd, &MethodOptions::selfsd>(
        "selfsd", "Self-SD: the model itself with blocks left out, which were searched beforehand"),
    by_layers<make_selector<SwiftSelector, SwiftOptions>, &MethodOptions::swift>(
        "swift", "SWIFT: the model itself with blocks left out, which are searched while it runs"),
    by_layers<make_selector<KnnSelector, KnnOptions>, &MethodOptions::knnssd>(
        "knnssd", "KNN-SSD: the model itself with blocks left out, by what the prompt is about"),
    by_layers<make_knapspec, &MethodOptions::knapspec>(
        "knapspec", "KnapSpec: the same, the blocks chosen as a knapsack of what they cost"),
    by_layers<make_clasp, &MethodOptions::clasp>(
        "clasp", "CLaSp: whole layers left out, chosen on the latest token"),
    by_layers<make_del, &MethodOptions::del>(
        "del", "DEL: the model left early, at the layer that was right most for its cost"),
});

// Visits a method's options with its name in front of theirs.
void describe_prefixed(const MethodInfo& method, MethodOptions& options, const OptionVisitor& visitor) {
  OptionVisitor prefixed([&](const OptionText& text, const Option& option) {
    const std::string name = fmt::format("{}-{}", method.name, text.name);
    visitor.visit({.name = name, .help = text.help, .if_empty = text.if_empty}, option);
  });
  method.describe(options, prefixed);
}

// Throw for a value that is out of range or missing.
template <typename Number>
void check_option(const OptionText& text, const NumberOption<Number>& option) {
  const auto& [value, range] = option;
  if (value >= range.min && value <= range.max) return;
  fail(ErrorCode::kInvalidArgument, "{} is {}: choose a number from {} to {}", text.name, value,
       range.min, range.max);
}

void check_option(const OptionText& /*text*/, const SwitchOption& /*option*/) {}

void check_option(const OptionText& text, const TextOption& option) {
  const auto& [value, choices] = option;
  if (value.empty() && !text.if_empty.empty()) fail(ErrorCode::kInvalidArgument, "{}", text.if_empty);
  if (choices.empty() || std::ranges::find(choices, value) != choices.end()) return;
  fail(ErrorCode::kInvalidArgument, "{} is '{}': choose one of {}", text.name, value,
       fmt::join(choices, ", "));
}

// Throw for a value that is none of the option's.
template <typename Number>
void set_option(const OptionText& text, std::string_view value, const NumberOption<Number>& option) {
  Number number{};
  const char* const end = value.data() + value.size();
  const auto result = std::from_chars(value.data(), end, number);
  if (result.ec != std::errc{} || result.ptr != end) {
    fail(ErrorCode::kInvalidArgument, "{} is '{}': choose a number from {} to {}", text.name, value,
         option.range.min, option.range.max);
  }
  check_option(text, NumberOption<Number>{number, option.range});
  option.value = number;
}

void set_option(const OptionText& text, std::string_view value, const SwitchOption& option) {
  if (value != "true" && value != "false") {
    fail(ErrorCode::kInvalidArgument, "{} is '{}': choose true or false", text.name, value);
  }
  option.value = value == "true";
}

void set_option(const OptionText& text, std::string_view value, const TextOption& option) {
  std::string chosen(value);
  // Whether it is needed depends on the method.
  check_option({.name = text.name, .help = text.help}, TextOption{chosen, option.choices});
  option.value = std::move(chosen);
}

}  // namespace

std::span<const MethodInfo> draft_methods() {
  return kMethods;
}

void AutoOptions::describe(OptionVisitor& visitor) {
  std::vector<std::string_view> choices{"none"};
  for (const MethodInfo& method : kMethods) {
    if (method.drafts_with == DraftsWith::kLayers) choices.push_back(method.name);
  }
  visitor.visit({"layers", "How the model itself drafts where that pays"}, layers, choices);
}

void MethodOptions::describe(OptionVisitor& visitor) {
  stopping.describe(visitor);
  for (const MethodInfo& method : kMethods) describe_prefixed(method, *this, visitor);
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

void check_method(std::string_view name, const MethodOptions& options) {
  const MethodInfo& method = find_method(name);
  MethodOptions copy = options;
  OptionVisitor checking([](const OptionText& text, const Option& option) {
    std::visit([&](const auto& field) { check_option(text, field); }, option);
  });
  describe_prefixed(method, copy, checking);
  if (method.drafts_with == DraftsWith::kTexts) return;
  copy.stopping.describe(checking);
  const std::string& layers = options.automatic.layers;
  if (method.drafts_with_many && layers != "none") check_method(layers, options);
}

DrafterSet make_drafters(std::string_view name, const MethodOptions& options,
                         const DraftResources& resources) {
  DrafterSet drafters;
  add_checked(name, options, resources, drafters);
  return drafters;
}

bool has_method_option(std::string_view name) {
  bool is_there = false;
  OptionVisitor looking([&](const OptionText& text, const Option&) { is_there |= text.name == name; });
  MethodOptions().describe(looking);
  return is_there;
}

void set_method_option(MethodOptions& options, std::string_view name, std::string_view value) {
  bool is_there = false;
  OptionVisitor setting([&](const OptionText& text, const Option& option) {
    if (text.name != name) return;
    is_there = true;
    std::visit([&](const auto& field) { set_option(text, value, field); }, option);
  });
  options.describe(setting);
  if (!is_there) fail(ErrorCode::kInvalidArgument, "there is no drafting option '{}'", name);
}

}  // namespace forerun
