#include "serve/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "serve/page/page_files.h"

namespace forerun {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

TEST(Page, IsAtTheRoot) {
  const auto page = show_page("/");
  ASSERT_TRUE(page);
  EXPECT_THAT(page->body, StartsWith("<!doctype html>"));
  EXPECT_THAT(page->body, EndsWith("</html>\n"));
  EXPECT_EQ(page->content_type, "text/html; charset=utf-8");
  EXPECT_THAT(page->headers, Contains(Pair("Content-Security-Policy", HasSubstr("default-src 'none'"))));
  EXPECT_EQ(show_page("/index.html")->body, page->body);
}

TEST(Page, HasNothingElse) {
  for (const char* path :
       {"", "/page", "/page/", "/page/..", "/page/nothing.js", "/app.js", "/v1/models"})
    EXPECT_FALSE(show_page(path)) << path;
}

// Every file that another names is there, and every file is named by another.
TEST(Page, IsWhole) {
  const std::regex names(R"re((?:"page/|from "\./)([a-z_]+\.[a-z]+)")re");
  std::set<std::string> named{"index.html"};
  for (const PageFile& file : page_files()) {
    const std::string text(file.bytes);
    for (std::sregex_iterator found(text.begin(), text.end(), names), end; found != end; ++found) {
      named.insert((*found)[1]);
      EXPECT_TRUE(show_page("/page/" + (*found)[1].str())) << file.name << " names " << (*found)[1];
    }
  }
  for (const PageFile& file : page_files())
    EXPECT_TRUE(named.contains(std::string(file.name))) << file.name;
}

// Neither scripts nor styles within the markup: the policy forbids them.
TEST(Page, KeepsToItsPolicy) {
  const std::string text = show_page("/")->body;
  EXPECT_FALSE(std::regex_search(text, std::regex("<style|style=|<script>| on[a-z]+=|https?://")));
}

}  // namespace
}  // namespace forerun
