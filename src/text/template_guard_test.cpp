#include "text/template_guard.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "jinja/parser.h"

namespace forerun {
namespace {

size_t steps_of(const std::string& source) {
  jinja::program program = jinja::parse_from_tokens(jinja::lexer().tokenize(source));
  guard_program(program);
  jinja::context context;
  const TemplateRun run;
  jinja::runtime(context).execute(program);
  return run.n_steps();
}

TEST(TemplateGuard, CountsEveryLoopBodyAndMacroCall) {
  EXPECT_EQ(steps_of("text {{ 1 }}"), 0u);
  EXPECT_EQ(steps_of("{% for a in [1, 2, 3] %}{% endfor %}"), 3u);
  EXPECT_EQ(steps_of("{% for a in [1, 2] %}{% for b in [1, 2, 3] %}{% endfor %}{% endfor %}"), 2u + 6u);
  EXPECT_EQ(steps_of("{% for a in [1, 2, 3] %}{% continue %}{% endfor %}"), 3u);
  EXPECT_EQ(steps_of("{% macro f() %}x{% endmacro %}{{ f() }}{{ f() }}"), 2u);
  EXPECT_EQ(steps_of("{% macro f(x=1) %}x{% endmacro %}{{ f() }}{{ f(2) }}"), 3u);
  // In every kind of block.
  const std::string loop = "{% for a in [1, 2] %}{% endfor %}";
  EXPECT_EQ(steps_of("{% if 1 %}" + loop + "{% endif %}"), 2u);
  EXPECT_EQ(steps_of("{% if 0 %}{% elif 0 %}{% else %}" + loop + "{% endif %}"), 2u);
  EXPECT_EQ(steps_of("{% for a in [] %}{% else %}" + loop + "{% endfor %}"), 2u);
  EXPECT_EQ(steps_of("{% set x %}" + loop + "{% endset %}"), 2u);
  EXPECT_EQ(steps_of("{% filter upper %}" + loop + "{% endfilter %}"), 2u);
  EXPECT_EQ(
      steps_of("{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}" + loop + "{% endcall %}"),
      4u);
}

TEST(TemplateGuard, StopsAfterTooManySteps) {
  const TemplateRun run;
  for (size_t i = 0; i < TemplateLimits::kMaxSteps; ++i) TemplateRun::step();
  EXPECT_THROW(TemplateRun::step(), std::runtime_error);
}

}  // namespace
}  // namespace forerun
