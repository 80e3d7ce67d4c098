#include "text/template_guard.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "core/check.h"

namespace forerun {
namespace {

thread_local TemplateRun* current_run = nullptr;

uintptr_t stack_position() {
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
}

// Stands first in a body and renders as nothing.
struct GuardStatement : jinja::statement {
  GuardStatement() { pos = 0; }
  std::string type() const override { return "Guard"; }
  jinja::value execute_impl(jinja::context&) const override {
    TemplateRun::step();
    return jinja::mk_val<jinja::value_undefined>();
  }
};

// Stands for the default value of a macro's parameter, which may call the macro.
struct GuardedDefault : jinja::expression {
  explicit GuardedDefault(jinja::statement_ptr wrapped) : inner(std::move(wrapped)) { pos = inner->pos; }
  std::string type() const override { return inner->type(); }
  jinja::value execute_impl(jinja::context& context) const override {
    TemplateRun::step();
    return inner->execute(context);
  }
  jinja::statement_ptr inner;
};

void guard_body(jinja::statements& body);

void guard_function(jinja::statements& parameters, jinja::statements& body) {
  for (const auto& parameter : parameters) {
    auto* with_default = dynamic_cast<jinja::keyword_argument_expression*>(parameter.get());
    if (with_default == nullptr) continue;
    with_default->val = std::make_unique<GuardedDefault>(std::move(with_default->val));
  }
  guard_body(body);
  body.insert(body.begin(), std::make_unique<GuardStatement>());
}

void guard_statement(jinja::statement& statement) {
  if (auto* loop = dynamic_cast<jinja::for_statement*>(&statement)) {
    guard_body(loop->body);
    guard_body(loop->default_block);
    loop->body.insert(loop->body.begin(), std::make_unique<GuardStatement>());
  } else if (auto* macro = dynamic_cast<jinja::macro_statement*>(&statement)) {
    guard_function(macro->args, macro->body);
  } else if (auto* call = dynamic_cast<jinja::call_statement*>(&statement)) {
    guard_function(call->caller_args, call->body);
  } else if (auto* branch = dynamic_cast<jinja::if_statement*>(&statement)) {
    guard_body(branch->body);
    guard_body(branch->alternate);
  } else if (auto* set = dynamic_cast<jinja::set_statement*>(&statement)) {
    guard_body(set->body);
  } else if (auto* filter = dynamic_cast<jinja::filter_statement*>(&statement)) {
    guard_body(filter->body);
  }
}

void guard_body(jinja::statements& body) {
  for (const auto& statement : body) guard_statement(*statement);
}

jinja::value limited_range(const jinja::func_args& args) {
  args.ensure_count(1, 3);
  const auto argument = [&](size_t i) { return static_cast<double>(args.get_pos(i)->as_int()); };
  const double first = args.count() > 1 ? argument(0) : 0;
  const double last = argument(args.count() > 1 ? 1 : 0);
  const double step = args.count() > 2 ? argument(2) : 1;
  if (step != 0 && (last - first) / step > static_cast<double>(TemplateLimits::kMaxRange)) {
    throw std::runtime_error("range() has too many elements");
  }
  return jinja::global_builtins().at("range")(args);
}

jinja::value strftime_now(const jinja::func_args& args) {
  args.ensure_count(1, 1);
  const std::string format = args.get_pos(0)->as_string().str();
  std::tm local{};
  localtime_r(&args.ctx.current_time, &local);
  char text[256];
  const size_t n = std::strftime(text, sizeof(text), format.c_str(), &local);
  return jinja::mk_val<jinja::value_string>(std::string(text, n));
}

// Follows the nesting of blocks through the tags of a template.
class BlockDepth {
 public:
  // A statement tag's name, and whether it assigns with "=".
  void tag(std::string_view name, bool assigns) {
    static constexpr std::string_view kOpening[] = {"if", "for", "macro", "call", "filter"};
    const bool opens = std::find(std::begin(kOpening), std::end(kOpening), name) != std::end(kOpening) ||
                       (name == "set" && !assigns);
    if (opens) {
      levels_.push_back(1);
      ++depth_;
    } else if (name == "elif" && !levels_.empty()) {
      ++levels_.back();  // parsed as an if inside the else branch
      ++depth_;
    } else if (name.starts_with("end") && name != "endgeneration" && !levels_.empty()) {
      depth_ -= levels_.back();
      levels_.pop_back();
    }
    if (depth_ > TemplateLimits::kMaxNesting)
      throw std::runtime_error("its blocks are nested too deeply");
  }

 private:
  std::vector<size_t> levels_;
  size_t depth_ = 0;
};

}  // namespace

void check_template_tokens(const jinja::lexer_result& lexed) {
  using jinja::token;
  BlockDepth blocks;
  size_t n_brackets = 0;
  size_t tag_start = 0;
  bool assigns = false;
  for (size_t i = 0; i < lexed.tokens.size(); ++i) {
    const token& t = lexed.tokens[i];
    switch (t.t) {
      case token::open_statement:
      case token::open_expression:
        tag_start = i;
        n_brackets = 0;
        assigns = false;
        break;
      case token::close_statement:
        if (tag_start + 1 < i) blocks.tag(lexed.tokens[tag_start + 1].value, assigns);
        break;
      case token::open_paren:
      case token::open_square_bracket:
      case token::open_curly_bracket: ++n_brackets; break;
      case token::close_paren:
      case token::close_square_bracket:
      case token::close_curly_bracket: n_brackets -= n_brackets > 0 ? 1 : 0; break;
      case token::equals: assigns = assigns || n_brackets == 0; break;
      case token::identifier:
      case token::string_literal:
        // The engine divides by its argument without looking.
        if (t.value == "divisibleby")
          throw std::runtime_error("the test 'divisibleby' is not supported");
        break;
      case token::text:
      case token::comment: tag_start = i; break;
      default: break;
    }
    if (n_brackets > TemplateLimits::kMaxNesting) {
      throw std::runtime_error("its expressions are nested too deeply");
    }
    if (i - tag_start > TemplateLimits::kMaxTagTokens)
      throw std::runtime_error("one of its tags is too long");
  }
}

void guard_program(jinja::program& program) {
  guard_body(program.body);
}

TemplateRun::TemplateRun() : stack_base_(stack_position()) {
  CHECK(current_run == nullptr);
  current_run = this;
}

TemplateRun::~TemplateRun() {
  current_run = nullptr;
}

void TemplateRun::step() {
  CHECK(current_run != nullptr);
  const uintptr_t here = stack_position();
  const uintptr_t base = current_run->stack_base_;
  if ((here > base ? here - base : base - here) > TemplateLimits::kMaxStackBytes) {
    throw std::runtime_error("its macros call each other too deeply");
  }
  if (++current_run->n_steps_ > TemplateLimits::kMaxSteps) throw std::runtime_error("it runs too long");
}

void set_guarded_functions(jinja::context& context) {
  context.set_val("range", jinja::mk_val<jinja::value_func>("range", limited_range));
  context.set_val("strftime_now", jinja::mk_val<jinja::value_func>("strftime_now", strftime_now));
}

}  // namespace forerun
