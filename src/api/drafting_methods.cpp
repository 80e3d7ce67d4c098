#include <fmt/format.h>
#include <forerun/drafting_methods.h>

#include <algorithm>

#include "draft/methods.h"

namespace forerun {
namespace {

struct Tables {
  std::vector<DraftingMethod> methods;
  std::vector<DraftingOption> shared;
};

template <typename Number>
void fill(DraftingOption& to, const NumberOption<Number>& option) {
  to.type = std::is_integral_v<Number> ? OptionType::kInteger : OptionType::kNumber;
  to.usual = fmt::format("{}", option.value);
  to.min = static_cast<double>(option.range.min);
  to.max = static_cast<double>(option.range.max);
}

void fill(DraftingOption& to, const SwitchOption& option) {
  to.type = OptionType::kSwitch;
  to.usual = option.value ? "true" : "false";
}

void fill(DraftingOption& to, const TextOption& option) {
  to.type = OptionType::kText;
  to.usual = option.value;
  to.choices = {option.choices.begin(), option.choices.end()};
}

Tables make_tables() {
  Tables tables;
  for (const MethodInfo& method : draft_methods()) {
    tables.methods.push_back({.name = std::string(method.name),
                              .summary = std::string(method.summary),
                              .drafts_with = method.drafts_with});
  }
  // Every option goes where it belongs: below the method whose name it begins with.
  OptionVisitor listing([&](const OptionText& text, const Option& option) {
    DraftingOption listed{.name = std::string(text.name), .help = std::string(text.help), .usual = {}};
    std::visit([&](const auto& field) { fill(listed, field); }, option);
    const auto owner = std::ranges::find_if(tables.methods, [&](const DraftingMethod& method) {
      return text.name.starts_with(method.name + "-");
    });
    (owner == tables.methods.end() ? tables.shared : owner->options).push_back(std::move(listed));
  });
  MethodOptions().describe(listing);
  return tables;
}

const Tables& tables() {
  static const Tables made = make_tables();
  return made;
}

}  // namespace

const std::vector<DraftingMethod>& drafting_methods() {
  return tables().methods;
}

const DraftingMethod& drafting_method(std::string_view name) {
  const MethodInfo& method = find_method(name);
  return tables().methods[static_cast<size_t>(&method - draft_methods().data())];
}

const std::vector<DraftingOption>& shared_drafting_options() {
  return tables().shared;
}

}  // namespace forerun
