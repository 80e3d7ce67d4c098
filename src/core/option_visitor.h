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

#include <span>
#include <string>
#include <string_view>

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

class OptionVisitor {
 public:
  virtual ~OptionVisitor() = default;
  virtual void visit(const OptionText& text, int& value, OptionRange<int> range) = 0;
  virtual void visit(const OptionText& text, double& value, OptionRange<double> range) = 0;
  virtual void visit(const OptionText& text, bool& value) = 0;
  // No choices: any text.
  virtual void visit(const OptionText& text, std::string& value,
                     std::span<const std::string_view> choices) = 0;
};

}  // namespace forerun
