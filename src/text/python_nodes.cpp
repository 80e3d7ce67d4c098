#include "text/python_nodes.h"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "text/python_filters.h"
#include "text/python_values.h"

namespace forerun {
namespace {

using jinja::context;
using jinja::is_val;
using jinja::mk_val;
using jinja::statement_ptr;
using Value = jinja::value;

// A value that is known already, where the engine wants an expression.
struct Known : jinja::expression {
  explicit Known(Value known_value) : known(std::move(known_value)) { pos = 0; }
  Value execute_impl(context&) const override { return known; }
  Value known;
};

// Does what `inner` did, and something with its value. It keeps the name that errors show.
struct Wrapped : jinja::expression {
  explicit Wrapped(statement_ptr wrapped) : inner(std::move(wrapped)) { pos = inner->pos; }
  std::string type() const override { return inner->type(); }
  statement_ptr inner;
};

// {{ x }}, and the sides of x ~ y.
struct TextNode : Wrapped {
  using Wrapped::Wrapped;
  Value execute_impl(context& ctx) const override {
    Value result = inner->execute(ctx);
    if (is_val<jinja::value_string>(result)) return result;
    return mk_val<jinja::value_string>(python_text(result));
  }
};

// What the template calls the value of an expression, where it does.
std::string name_of(const jinja::statement& node) {
  if (const auto* wrapped = dynamic_cast<const Wrapped*>(&node)) return name_of(*wrapped->inner);
  if (const auto* member = dynamic_cast<const jinja::member_expression*>(&node))
    return name_of(*member->property);
  if (const auto* literal = dynamic_cast<const jinja::string_literal*>(&node)) return literal->val;
  const auto* identifier = dynamic_cast<const jinja::identifier*>(&node);
  return identifier == nullptr ? "something" : identifier->val;
}

Value required(Value result, const jinja::statement& node) {
  if (result->is_undefined()) throw std::runtime_error("'" + name_of(node) + "' is not defined");
  return result;
}

// The x of x.y and x[y].
struct OwnerNode : Wrapped {
  using Wrapped::Wrapped;
  Value execute_impl(context& ctx) const override { return required(inner->execute(ctx), *inner); }
};

struct SumNode : jinja::expression {
  SumNode(jinja::token op, statement_ptr left_side, statement_ptr right_side)
      : plus(std::move(op)), left(std::move(left_side)), right(std::move(right_side)) {
    pos = left->pos;
  }
  std::string type() const override { return "BinaryExpression"; }
  Value execute_impl(context& ctx) const override {
    Value first = required(left->execute(ctx), *left);
    Value second = required(right->execute(ctx), *right);
    if (is_val<jinja::value_string>(first) != is_val<jinja::value_string>(second)) {
      throw std::runtime_error(first->type() + " and " + second->type() + " cannot be added");
    }
    return jinja::binary_expression(plus, std::make_unique<Known>(std::move(first)),
                                    std::make_unique<Known>(std::move(second)))
        .execute_impl(ctx);
  }
  jinja::token plus;
  statement_ptr left;
  statement_ptr right;
};

// What a loop goes through: of a text, its characters.
struct SequenceNode : Wrapped {
  using Wrapped::Wrapped;
  Value execute_impl(context& ctx) const override {
    Value result = inner->execute(ctx);
    if (!is_val<jinja::value_string>(result)) return result;
    return python_filter("list", result)(result, jinja::func_args(ctx));
  }
};

jinja::func_args executed(const jinja::statements& expressions, context& ctx) {
  jinja::func_args arguments(ctx);
  for (const auto& expression : expressions) arguments.push_back(expression->execute(ctx));
  return arguments;
}

jinja::statements known(const jinja::func_args& arguments) {
  jinja::statements result;
  for (const Value& argument : arguments.get_args()) result.push_back(std::make_unique<Known>(argument));
  return result;
}

statement_ptr identifier_at(const std::string& name, size_t pos) {
  auto identifier = std::make_unique<jinja::identifier>(name);
  identifier->pos = pos;
  return identifier;
}

// x | name(arguments)
struct FilterNode : jinja::expression {
  FilterNode(statement_ptr filtered, std::string filter_name, jinja::statements args)
      : operand(std::move(filtered)), name(std::move(filter_name)), arguments(std::move(args)) {
    pos = operand->pos;
  }
  std::string type() const override { return "FilterExpression"; }
  Value execute_impl(context& ctx) const override {
    Value input = operand->execute(ctx);
    const jinja::func_args given = executed(arguments, ctx);
    if (const PythonFunction function = python_filter(name, input)) return function(input, given);
    statement_ptr filter = identifier_at(name, pos);
    if (given.count() > 0) {
      filter = std::make_unique<jinja::call_expression>(std::move(filter), known(given));
      filter->pos = pos;
    }
    return jinja::filter_expression(std::make_unique<Known>(std::move(input)), std::move(filter))
        .execute_impl(ctx);
  }
  statement_ptr operand;
  std::string name;
  jinja::statements arguments;
};

// x.name(arguments)
struct MethodNode : jinja::expression {
  MethodNode(statement_ptr owned_by, std::string method_name, jinja::statements args)
      : owner(std::move(owned_by)), name(std::move(method_name)), arguments(std::move(args)) {
    pos = owner->pos;
  }
  std::string type() const override { return "CallExpression"; }
  Value execute_impl(context& ctx) const override {
    Value input = owner->execute(ctx);
    const jinja::func_args given = executed(arguments, ctx);
    if (const PythonFunction function = python_method(name, input, given)) return function(input, given);
    if (input->is_none()) throw std::runtime_error("None has no '" + name + "'");
    auto member = std::make_unique<jinja::member_expression>(std::make_unique<Known>(std::move(input)),
                                                             identifier_at(name, pos), false);
    member->pos = pos;
    return jinja::call_expression(std::move(member), known(given)).execute_impl(ctx);
  }
  statement_ptr owner;
  std::string name;
  jinja::statements arguments;
};

// x[y] and x[a:b:c], which count characters where x is a text.
struct ElementNode : Wrapped {
  using Wrapped::Wrapped;
  Value execute_impl(context& ctx) const override {
    const auto& member = static_cast<const jinja::member_expression&>(*inner);
    Value object = member.object->execute(ctx);
    if (object->is_none()) return mk_val<jinja::value_undefined>();
    const auto* range = dynamic_cast<const jinja::slice_expression*>(member.property.get());
    if (range != nullptr) return part(object, *range, ctx);
    Value key = member.property->execute(ctx);
    if (is_val<jinja::value_string>(object) && is_val<jinja::value_int>(key)) {
      const int64_t at = key->as_int();
      const std::string text = object->as_string().str();
      const auto all = characters(text);
      const int64_t place = at < 0 ? at + static_cast<int64_t>(all.size()) : at;
      if (place < 0 || place >= static_cast<int64_t>(all.size()))
        return mk_val<jinja::value_undefined>();
      return mk_val<jinja::value_string>(std::string(all[static_cast<size_t>(place)]));
    }
    return engines(std::move(object), std::make_unique<Known>(std::move(key)), ctx);
  }

 private:
  static Value part(const Value& object, const jinja::slice_expression& range, context& ctx) {
    const auto number = [&](const statement_ptr& expression) -> std::optional<int64_t> {
      if (!expression) return std::nullopt;
      const Value result = expression->execute(ctx);
      if (result->is_none()) return std::nullopt;
      return result->as_int();
    };
    const auto first = number(range.start_expr);
    const auto last = number(range.stop_expr);
    const int64_t step = number(range.step_expr).value_or(1);
    if (is_val<jinja::value_string>(object)) {
      return mk_val<jinja::value_string>(sliced(object->as_string().str(), first, last, step));
    }
    const auto bound = [](std::optional<int64_t> place) -> statement_ptr {
      if (!place) return nullptr;
      return std::make_unique<Known>(mk_val<jinja::value_int>(*place));
    };
    return engines(
        object, std::make_unique<jinja::slice_expression>(bound(first), bound(last), bound(step)), ctx);
  }

  static Value engines(Value object, statement_ptr property, context& ctx) {
    return jinja::member_expression(std::make_unique<Known>(std::move(object)), std::move(property),
                                    true)
        .execute_impl(ctx);
  }
};

}  // namespace

statement_ptr text_node(statement_ptr inner) {
  return std::make_unique<TextNode>(std::move(inner));
}

statement_ptr owner_node(statement_ptr inner) {
  return std::make_unique<OwnerNode>(std::move(inner));
}

statement_ptr sequence_node(statement_ptr inner) {
  return std::make_unique<SequenceNode>(std::move(inner));
}

statement_ptr element_node(statement_ptr member) {
  return std::make_unique<ElementNode>(std::move(member));
}

statement_ptr sum_node(const jinja::token& plus, statement_ptr left, statement_ptr right) {
  return std::make_unique<SumNode>(plus, std::move(left), std::move(right));
}

statement_ptr filter_node(statement_ptr operand, const std::string& name, jinja::statements arguments) {
  return std::make_unique<FilterNode>(std::move(operand), name, std::move(arguments));
}

statement_ptr method_node(statement_ptr owner, const std::string& name, jinja::statements arguments) {
  return std::make_unique<MethodNode>(std::move(owner), name, std::move(arguments));
}

}  // namespace forerun
