#include "text/template_python.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "text/chat_template.h"

namespace forerun {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What Python's Jinja makes of each of these was seen there.
std::string rendered(const std::string& source) {
  return ChatTemplate::from_source(source, {"<s>", "</s>"})
      .render(
          R"({"messages": [{"role": "user", "content": "Hé"}, {"role": "assistant", "content": null}],
              "number": 3.0, "small": 1e-7, "large": 1e20, "none": null})");
}

std::string failure(const std::string& source) {
  try {
    return "rendered: " + rendered(source);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    return error.what();
  }
}

TEST(TemplatePython, PrintsValuesAsPythonDoes) {
  EXPECT_EQ(rendered("{{ none }}|{{ true }}|{{ nothing }}|{{ number }}|{{ small }}|{{ large }}"),
            "None|True||3.0|1e-07|1e+20");
  EXPECT_EQ(rendered("{{ [1, 'a', none] }}{{ {'a': \"it's\", 'b': [], 'c': 'x\"y'} }}{{ (1, 2) }}"),
            "[1, 'a', None]{'a': \"it's\", 'b': [], 'c': 'x\"y'}(1, 2)");
  EXPECT_EQ(rendered("{{ messages[1] }}"), "{'role': 'assistant', 'content': None}");
  EXPECT_EQ(rendered("{{ none ~ 1 ~ nothing ~ true }}"), "None1True");
  EXPECT_EQ(rendered("{{ number|string }}{{ none|string|trim }}"), "3.0None");
}

TEST(TemplatePython, WritesJsonAsPythonDoes) {
  EXPECT_EQ(rendered("{{ {'a': number, 'b': [1, {}], 'c': messages[0].content, 'd': none}|tojson }}"),
            R"({"a": 3.0, "b": [1, {}], "c": "Hé", "d": null})");
  EXPECT_EQ(rendered("{{ {'b': 1, 'a': [1, 2], 'c': []}|tojson(indent=2) }}"),
            "{\n  \"b\": 1,\n  \"a\": [\n    1,\n    2\n  ],\n  \"c\": []\n}");
  EXPECT_EQ(
      rendered(
          "{{ {'b': '😀é', 'a': 1}|tojson(sort_keys=true, ensure_ascii=true, separators=(',', ':')) }}"),
      R"({"a":1,"b":"\ud83d\ude00\u00e9"})");
}

TEST(TemplatePython, CountsCharacters) {
  EXPECT_EQ(rendered("{{ 'é😀x'|length }}{{ 'é😀x'[0] }}{{ 'é😀x'[-1] }}{{ 'é😀x'[1:] }}{{ 'é😀x'[::-1] }}"),
            "3éx😀xx😀é");
  EXPECT_EQ(rendered("{{ 'abc'[:-1] }}{{ 'abc'[5:] }}{{ 'abc'[-10:2] }}{{ 'abc'[9] is defined }}"),
            "ababFalse");
  EXPECT_EQ(rendered("{% for c in 'añ' %}{{ c }}.{% endfor %}{{ 'ñb'|list }}{{ 'ñb'|first }}"),
            "a.ñ.['ñ', 'b']ñ");
  EXPECT_EQ(
      rendered("[{{ '\xc2\xa0x\xe3\x80\x80'|trim }}{{ 'xxa '.strip('x') }}{{ ' a  b '.split() }}]"),
      "[xa ['a', 'b']]");
}

TEST(TemplatePython, FiltersAsPythonDoes) {
  EXPECT_EQ(rendered("{{ none|default('x') }}|{{ nothing|default('x') }}|{{ ''|default('x', true) }}"),
            "None|x|x");
  EXPECT_EQ(
      rendered("{{ ['b', 'C', 'a']|sort }}{{ [3, 1]|sort(reverse=true) }}{{ [1, 1, 2]|unique|list }}"),
      "['a', 'b', 'C'][3, 1][1, 2]");
  EXPECT_EQ(rendered("{% for k, v in {'b': 1, 'C': 2, 'a': 3}|dictsort %}{{ k }}{{ v }}{% endfor %}"),
            "a3b1C2");
  EXPECT_EQ(
      rendered(
          "{{ [1, none, 'a']|join(',') }}{{ 'abab'|replace('b', 'x', 1) }}{{ ', '.join(['a', 'b']) }}"),
      "1,None,aaxaba, b");
  EXPECT_EQ(rendered("{{ {'a': 1}|list }}{{ none['x'] is defined }}"), "['a']False");
}

TEST(TemplatePython, FailsWherePythonFails) {
  EXPECT_THAT(failure("{{ 'x' + messages[0].name }}"), HasSubstr("'name' is not defined"));
  EXPECT_THAT(failure("{{ nothing.name }}"), HasSubstr("'nothing' is not defined"));
  EXPECT_THAT(failure("{{ messages[0].calls[0].name }}"), HasSubstr("is not defined"));
  EXPECT_THAT(failure("{{ 'x' + messages[1].content }}"), HasSubstr("String and None cannot be added"));
  EXPECT_THAT(failure("{{ 'x' + 1 }}"), HasSubstr("cannot be added"));
  EXPECT_THAT(failure("{% for tool in none %}{% endfor %}"), HasSubstr("failed"));
  EXPECT_THAT(failure("{{ none|length }}"), HasSubstr("None has no length"));
  EXPECT_THAT(failure("{{ none.split() }}"), HasSubstr("None has no 'split'"));
  EXPECT_THAT(failure("{{ nothing|tojson }}"), HasSubstr("undefined"));
  EXPECT_THAT(failure("{{ raise_exception('No.') }}"), HasSubstr("refuses these messages: No."));
}

}  // namespace
}  // namespace forerun
