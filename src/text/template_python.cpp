#include "text/template_python.h"

#include <memory>
#include <utility>

#include "text/python_nodes.h"

namespace forerun {
namespace {

using jinja::statement_ptr;

void follow(statement_ptr& node);

void follow_all(jinja::statements& nodes) {
  for (statement_ptr& node : nodes) follow(node);
}

// Statements and what is printed between them.
void follow_body(jinja::statements& body) {
  for (statement_ptr& node : body) {
    const bool is_printed = dynamic_cast<jinja::expression*>(node.get()) != nullptr &&
                            dynamic_cast<jinja::string_literal*>(node.get()) == nullptr;
    follow(node);
    if (is_printed) node = text_node(std::move(node));
  }
}

void follow_call(statement_ptr& node, jinja::call_expression& call) {
  follow_all(call.args);
  auto* member = dynamic_cast<jinja::member_expression*>(call.callee.get());
  const auto* name = member == nullptr || member->computed
                         ? nullptr
                         : dynamic_cast<jinja::identifier*>(member->property.get());
  if (name == nullptr) return follow(call.callee);
  follow(member->object);
  node = method_node(owner_node(std::move(member->object)), name->val, std::move(call.args));
}

void follow_filter(statement_ptr& node, jinja::filter_expression& filter) {
  follow(filter.operand);
  if (auto* name = dynamic_cast<jinja::identifier*>(filter.filter.get())) {
    node = filter_node(std::move(filter.operand), name->val, jinja::statements());
  } else if (auto* call = dynamic_cast<jinja::call_expression*>(filter.filter.get())) {
    const auto* called = dynamic_cast<jinja::identifier*>(call->callee.get());
    if (called == nullptr) return;
    follow_all(call->args);
    node = filter_node(std::move(filter.operand), called->val, std::move(call->args));
  }
}

void follow_member(statement_ptr& node, jinja::member_expression& member) {
  follow(member.object);
  member.object = owner_node(std::move(member.object));
  if (!member.computed) return;
  follow(member.property);
  node = element_node(std::move(node));
}

void follow_binary(statement_ptr& node, jinja::binary_expression& binary) {
  follow(binary.left);
  follow(binary.right);
  if (binary.op.value == "+") {
    node = sum_node(binary.op, std::move(binary.left), std::move(binary.right));
  } else if (binary.op.value == "~") {
    binary.left = text_node(std::move(binary.left));
    binary.right = text_node(std::move(binary.right));
  }
}

bool follow_statement(jinja::statement& node) {
  if (auto* branch = dynamic_cast<jinja::if_statement*>(&node)) {
    follow(branch->test);
    follow_body(branch->body);
    follow_body(branch->alternate);
  } else if (auto* loop = dynamic_cast<jinja::for_statement*>(&node)) {
    // The engine looks for a condition of the loop right there.
    auto* chosen = dynamic_cast<jinja::select_expression*>(loop->iterable.get());
    if (chosen != nullptr) follow(chosen->test);
    statement_ptr& iterable = chosen != nullptr ? chosen->lhs : loop->iterable;
    follow(iterable);
    iterable = sequence_node(std::move(iterable));
    follow_body(loop->body);
    follow_body(loop->default_block);
  } else if (auto* set = dynamic_cast<jinja::set_statement*>(&node)) {
    if (set->val) follow(set->val);
    follow_body(set->body);
  } else if (auto* macro = dynamic_cast<jinja::macro_statement*>(&node)) {
    follow_all(macro->args);
    follow_body(macro->body);
  } else if (auto* call = dynamic_cast<jinja::call_statement*>(&node)) {
    if (auto* called = dynamic_cast<jinja::call_expression*>(call->call.get())) follow_all(called->args);
    follow_body(call->body);
  } else if (auto* filtered = dynamic_cast<jinja::filter_statement*>(&node)) {
    follow_body(filtered->body);
  } else {
    return false;
  }
  return true;
}

void follow(statement_ptr& node) {
  if (!node || follow_statement(*node)) return;
  if (auto* call = dynamic_cast<jinja::call_expression*>(node.get())) {
    follow_call(node, *call);
  } else if (auto* filter = dynamic_cast<jinja::filter_expression*>(node.get())) {
    follow_filter(node, *filter);
  } else if (auto* member = dynamic_cast<jinja::member_expression*>(node.get())) {
    follow_member(node, *member);
  } else if (auto* binary = dynamic_cast<jinja::binary_expression*>(node.get())) {
    follow_binary(node, *binary);
  } else if (auto* array = dynamic_cast<jinja::array_literal*>(node.get())) {
    follow_all(array->val);
  } else if (auto* tuple = dynamic_cast<jinja::tuple_literal*>(node.get())) {
    follow_all(tuple->val);
  } else if (auto* object = dynamic_cast<jinja::object_literal*>(node.get())) {
    for (auto& [key, item] : object->val) {
      follow(key);
      follow(item);
    }
  } else if (auto* chosen = dynamic_cast<jinja::select_expression*>(node.get())) {
    follow(chosen->lhs);
    follow(chosen->test);
  } else if (auto* test = dynamic_cast<jinja::test_expression*>(node.get())) {
    follow(test->operand);
    if (auto* with = dynamic_cast<jinja::call_expression*>(test->test.get())) follow_all(with->args);
  } else if (auto* unary = dynamic_cast<jinja::unary_expression*>(node.get())) {
    follow(unary->argument);
  } else if (auto* range = dynamic_cast<jinja::slice_expression*>(node.get())) {
    follow(range->start_expr);
    follow(range->stop_expr);
    follow(range->step_expr);
  } else if (auto* keyword = dynamic_cast<jinja::keyword_argument_expression*>(node.get())) {
    follow(keyword->val);
  } else if (auto* ternary = dynamic_cast<jinja::ternary_expression*>(node.get())) {
    follow(ternary->condition);
    follow(ternary->true_expr);
    follow(ternary->false_expr);
  }
}

}  // namespace

void follow_python(jinja::program& program) {
  follow_body(program.body);
}

}  // namespace forerun
