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

// Writes every option down where it belongs: below the method whose name it begins with.
class Listing final : public OptionVisitor {
 public:
  explicit Listing(Tables& tables) : tables_(tables) {}

  void visit(const OptionText& text, int& value, OptionRange<int> range) override {
    add({.name = std::string(text.name),
         .help = std::string(text.help),
         .type = OptionType::kInteger,
         .usual = fmt::format("{}", value),
         .min = static_cast<double>(range.min),
         .max = static_cast<double>(range.max)});
  }
  void visit(const OptionText& text, double& value, OptionRange<double> range) override {
    add({.name = std::string(text.name),
         .help = std::string(text.help),
         .type = OptionType::kNumber,
         .usual = fmt::format("{}", value),
         .min = range.min,
         .max = range.max});
  }
  void visit(const OptionText& text, bool& value) override {
    add({.name = std::string(text.name),
         .help = std::string(text.help),
         .type = OptionType::kSwitch,
         .usual = value ? "true" : "false"});
  }
  void visit(const OptionText& text, std::string& value,
             std::span<const std::string_view> choices) override {
    add({.name = std::string(text.name),
         .help = std::string(text.help),
         .type = OptionType::kText,
         .usual = value,
         .choices = {choices.begin(), choices.end()}});
  }

 private:
  void add(DraftingOption option) {
    const auto owner = std::ranges::find_if(tables_.methods, [&](const DraftingMethod& method) {
      return option.name.starts_with(method.name + "-");
    });
    (owner == tables_.methods.end() ? tables_.shared : owner->options).push_back(std::move(option));
  }

  Tables& tables_;
};

Tables make_tables() {
  Tables tables;
  for (const MethodInfo& method : draft_methods()) {
    tables.methods.push_back({.name = std::string(method.name),
                              .summary = std::string(method.summary),
                              .drafts_with = method.drafts_with});
  }
  Listing listing(tables);
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
