// Options that describe themselves.
//
// A struct of options has a function
//
//   void describe(OptionVisitor& visitor);
//
// that visits each of its fields with a name, a help text and what values make sense. One
// visitor makes command-line flags of them, another prints them, another sets one by name.
// So an option is written down once.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace forerun {

struct OptionText {
  std::string_view name;  // "max-nodes"
  std::string_view help;
  // Of a text without which nothing can be done: what to say where it is empty.
  std::string_view if_empty = {};
};

template <typename Number>
struct OptionRange {
  Number min;
  Number max;
};

// A field, and what values make sense.
template <typename Number>
struct NumberOption {
  Number& value;
  OptionRange<Number> range;
};
struct SwitchOption {
  bool& value;
};
struct TextOption {
  std::string& value;
  std::span<const std::string_view> choices;  // none: any text
};
using Option = std::variant<NumberOption<int>, NumberOption<double>, SwitchOption, TextOption>;

// Calls a function with every option it visits.
class OptionVisitor {
 public:
  using Take = std::function<void(const OptionText& text, const Option& option)>;
  explicit OptionVisitor(Take take) : take_(std::move(take)) {}

  void visit(const OptionText& text, int& value, OptionRange<int> range) const {
    take_(text, NumberOption<int>{value, range});
  }
  void visit(const OptionText& text, double& value, OptionRange<double> range) const {
    take_(text, NumberOption<double>{value, range});
  }
  void visit(const OptionText& text, bool& value) const { take_(text, SwitchOption{value}); }
  void visit(const OptionText& text, std::string& value,
             std::span<const std::string_view> choices) const {
    take_(text, TextOption{value, choices});
  }
  void visit(const OptionText& text, const Option& option) const { take_(text, option); }

 private:
  Take take_;
};

}  // namespace forerun
