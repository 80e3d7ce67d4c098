// Limits on chat templates.
//
// A chat template is a program that comes with a model file. llama.cpp's engine
// runs it without limits: it recurses as deep as the template is nested, its
// macros may call themselves and its loops run as long as they like. A template
// past these limits is refused, or stopped while it runs, with an exception that
// says so. They are far above what real templates need.
//
// Not covered: a template that builds data which contains itself or grows without
// bound by other means than loops.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jinja/lexer.h"
#include "jinja/runtime.h"

namespace forerun {

struct TemplateLimits {
  static constexpr size_t kMaxSourceBytes = size_t{1} << 20;
  static constexpr size_t kMaxNesting = 64;            // of blocks, and of brackets in one tag
  static constexpr size_t kMaxTagTokens = 1024;        // between {{ and }}, or {% and %}
  static constexpr size_t kMaxStackBytes = 512 << 10;  // when a macro is entered
  static constexpr size_t kMaxSteps = 200'000;         // loop bodies and macro calls
  static constexpr size_t kMaxRange = 100'000;         // elements of range()
};

// Checks what the parser and everything after it recurse over. Throws
// std::runtime_error.
void check_template_tokens(const jinja::lexer_result& tokens);

// Puts a check in front of every loop and macro body of the program.
void guard_program(jinja::program& program);

// One run of a guarded program, by the thread that made it. While it lives, the
// checks of the program count against its limits; they throw std::runtime_error.
class TemplateRun {
 public:
  TemplateRun();
  ~TemplateRun();
  TemplateRun(const TemplateRun&) = delete;
  TemplateRun& operator=(const TemplateRun&) = delete;

  // What the checks call.
  static void step();
  size_t n_steps() const { return n_steps_; }

 private:
  uintptr_t stack_base_;
  size_t n_steps_ = 0;
};

// Replaces functions of the engine by ones with limits: range(), and
// strftime_now(), which is not thread-safe there.
void set_guarded_functions(jinja::context& context);

}  // namespace forerun
