#include "bench/page/page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "bench/spec/report.h"
#include "pictures/markup_check.h"
#include "text/utf8.h"

namespace forerun {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Shape {
  std::vector<std::string> methods{"none", "pld", "auto"};
  std::vector<std::string> categories{"qa", "math"};
  int n_prompts = 20;  // per category
  bool drafts = true;
};

// Plain decoding takes 10 ms per token, method m takes 10 / (1 + m).
SpecBenchResult make_result(const Shape& shape) {
  std::mt19937 random(5);
  SpecBenchResult result;
  result.device = "cpu";
  result.device_description = "Some CPU";
  result.n_threads = 2;
  result.methods = shape.methods;
  for (int i = 0; i < shape.n_prompts; ++i) {
    for (const std::string& category : shape.categories) {
      result.prompts.push_back({.id = fmt::format("p{}", i), .category = category, .turns = {"hello"}});
    }
  }
  result.runs.assign(result.methods.size(), std::vector<SpecRun>(result.prompts.size()));
  for (size_t m = 0; m < result.methods.size(); ++m) {
    for (SpecRun& run : result.runs[m]) {
      run.tokens.assign(10, TokenId{1});
      run.origins.assign(10, std::nullopt);
      run.prompt_ms = 5;
      run.decode_ms = 100 / static_cast<double>(1 + m);
      SpeculationStatistics& speculation = run.speculation;
      speculation.n_steps = 5;
      speculation.n_tokens = 10;
      speculation.pass_ms = run.decode_ms * 0.9;
      if (m == 0 || !shape.drafts) continue;
      const auto n_drafted = static_cast<int64_t>(5 + random() % 40);
      speculation.by_source[0] = {.n_drafted = n_drafted, .n_tested = 5, .n_accepted = 4};
      speculation.by_depth = {{.n_drafted = n_drafted, .n_tested = 4, .n_accepted = 3},
                              {.n_drafted = 1, .n_tested = 1, .n_accepted = 1}};
      run.drafts = speculation.total();
    }
  }
  if (!result.runs.empty() && !result.prompts.empty()) result.pieces.assign(10, "word ");
  return result;
}

// Ours, and two modes of llama-server that take 200 and 400 ms where plain decoding takes 100.
SpecBenchResult with_llama_server() {
  SpecBenchResult result = make_result({.methods = {"none", "auto", "llama:plain", "llama:ngram-mod"}});
  result.n_peers = 2;
  result.llama_version = "b123";
  for (const size_t m : {2u, 3u}) {
    for (SpecRun& run : result.runs[m]) {
      run.tokens.assign(10, TokenId{2});
      run.origins.clear();
      run.decode_ms = m == 2 ? 200 : 400;
      run.drafts = {.n_drafted = 9, .n_tested = 0, .n_accepted = 4};
      run.speculation.by_source = {};
      run.speculation.by_depth.clear();
    }
  }
  return result;
}

std::string page_of(const SpecBenchResult& result, const SpecBenchOptions& options = {}) {
  const std::string page = spec_page(spec_bench_json(options, result), result);
  EXPECT_EQ(markup_fault(page), "");
  EXPECT_FALSE(has_bad_number(page));
  EXPECT_TRUE(is_valid_utf8(page));
  EXPECT_EQ(count_of(page, "<script"), 0u);
  EXPECT_EQ(count_of(page, "http"), count_of(page, "xmlns=\"http://www.w3.org/2000/svg\""));
  // Whatever is a plot says what it shows.
  EXPECT_EQ(count_of(page, "role=\"img\""), count_of(page, "role=\"img\" aria-label=\""));
  EXPECT_EQ(count_of(page, "aria-label=\"\""), 0u);
  return page;
}

TEST(SpecPage, SaysWhatCameOut) {
  SpecBenchResult result = make_result({});
  EXPECT_THAT(page_of(result),
              HasSubstr("auto is 3.00 times as fast as plain decoding on 40 prompts; every "
                        "text is the same."));
  result.runs[1][3].tokens.pop_back();
  EXPECT_THAT(page_of(result), HasSubstr("1 of 80 texts differ from those of plain decoding."));
  EXPECT_THAT(
      page_of(make_result({.methods = {"none", "auto", "pld"}})),
      HasSubstr("auto is 2.00 times as fast as plain decoding on 40 prompts (pld, the fastest: 3.00)"));
  EXPECT_THAT(page_of(make_result({.methods = {"none", "x", "y"}})),
              HasSubstr("y is 3.00 times as fast"));
}

TEST(SpecPage, SaysWhenTheDifferenceMayBeChance) {
  SpecBenchResult result = make_result({.methods = {"none", "auto"}});
  for (size_t i = 0; i < result.prompts.size(); ++i) result.runs[1][i].decode_ms = i % 2 == 0 ? 80 : 120;
  EXPECT_THAT(page_of(result), HasSubstr("may be chance"));
}

TEST(SpecPage, EscapesEveryName) {
  SpecBenchResult result =
      make_result({.methods = {"none", "a&b", "<img src=x>"}, .categories = {"<script>", "\"'&"}});
  result.prompts[0].id = "<b>";
  result.device_description = "<CPU>";
  result.pieces = {"<script>", "alert(1)", "</script>"};
  SpecBenchOptions options;
  options.engine.model = "it's <a> model.gguf";
  const std::string page = page_of(result, options);
  EXPECT_THAT(page, HasSubstr("<h3>&lt;script&gt; (20)</h3>"));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("--model &#39;it&#39;\\&#39;&#39;s &lt;a&gt; model.gguf&#39;"));
}

TEST(SpecPage, ShowsManyMethodsAndCategories) {
  Shape shape{.methods = {"none"}, .categories = {}, .n_prompts = 3};
  for (int m = 1; m < 10; ++m) shape.methods.push_back(fmt::format("method{}", m));
  for (int c = 0; c < 12; ++c) shape.categories.push_back(fmt::format("category {}", c));
  const std::string page = page_of(make_result(shape));
  for (const std::string& method : shape.methods) EXPECT_THAT(page, HasSubstr(">" + method + "</th>"));
  for (int m = 1; m < 10; ++m) {
    EXPECT_EQ(count_of(page, fmt::format(">method{}</text>", m)), 13u);  // a bar in every group
    EXPECT_THAT(page, HasSubstr(fmt::format("<h3>method{}</h3>", m)));   // its own cloud
    EXPECT_THAT(page, HasSubstr(fmt::format("method{}, position 2: 36 of 36 accepted", m)));
  }
  for (const std::string& category : shape.categories)
    EXPECT_THAT(page, HasSubstr(category + " (3)</h3>"));
  EXPECT_EQ(count_of(page, "role=\"img\""), 13u + 2u + 9u);
}

TEST(SpecPage, OneCategoryAndNone) {
  EXPECT_THAT(page_of(make_result({.categories = {"qa"}})), HasSubstr("<h3>qa (20)</h3>"));
  EXPECT_THAT(page_of(make_result({.categories = {""}})), HasSubstr("<h3>all prompts (20)</h3>"));
  const std::string mixed = page_of(make_result({.categories = {"", "qa"}}));
  EXPECT_THAT(mixed, HasSubstr("<h3>no category (20)</h3>"));
  EXPECT_THAT(mixed, HasSubstr("<h3>all prompts (40)</h3>"));
}

TEST(SpecPage, NothingDraftedOrMeasured) {
  EXPECT_THAT(page_of(make_result({.methods = {"none"}})), HasSubstr("no drafting method was measured"));
  EXPECT_EQ(count_of(page_of(make_result({.drafts = false})), "No tokens were drafted."), 2u);
  EXPECT_THAT(page_of(make_result({.n_prompts = 0})), HasSubstr("Nothing was measured."));
  EXPECT_THAT(page_of(make_result({.methods = {}})), HasSubstr("Nothing was measured."));

  SpecBenchResult some_idle = make_result({});
  for (SpecRun& run : some_idle.runs[1]) run.drafts = {};
  EXPECT_THAT(page_of(some_idle), HasSubstr("Drafted nothing: pld."));
}

TEST(SpecPage, OddTimes) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double time : {0.0, 1e-300, 1e300, kInfinity, kNaN}) {
    SpecBenchResult result = make_result({});
    for (SpecRun& run : result.runs[1]) run.decode_ms = run.speculation.draft_ms = time;
    page_of(result);
    for (SpecRun& run : result.runs[0]) run.decode_ms = time;
    page_of(result);
    SpecBenchResult compared = with_llama_server();
    for (SpecRun& run : compared.runs[2]) run.decode_ms = time;
    page_of(compared);
  }
  SpecBenchResult result = make_result({});
  result.runs[1][0].decode_ms = 1e4;
  EXPECT_THAT(page_of(result), HasSubstr("1 prompt that took over 3 times as long"));
}

TEST(SpecPage, ColoursTheSampleByOrigin) {
  SpecBenchResult result = make_result({});
  result.sample_prompt = 3;
  result.pieces = {"One\n", "two ", "three ", "\xF0\x9F", "\x98\x80", "\xFF", "!"};
  result.runs.back()[3].origins = {
      std::nullopt,        DraftSource::kInput,      DraftSource::kInput, DraftSource::kDatastore,
      DraftSource::kGuess, DraftSource::kDraftModel, std::nullopt};
  const std::string page = page_of(result);
  EXPECT_THAT(page,
              HasSubstr(">One\n<mark class=\"input\">two three </mark><mark class=\"guess\">😀</mark>"
                        "<mark class=\"draft-model\">\uFFFD</mark>!</div>"));
  EXPECT_THAT(page, HasSubstr("answer of auto to prompt p1 (math)"));
  EXPECT_THAT(page, HasSubstr("<mark class=\"input\">the input</mark> 29\u00A0%"));
}

TEST(SpecPage, ComparesWithLlamaServer) {
  SpecBenchOptions options;
  options.llama_server.program = "bin/llama-server";
  SpecBenchResult result = with_llama_server();
  result.runs[3][0].tokens.pop_back();
  const std::string page = page_of(result, options);
  EXPECT_THAT(page, HasSubstr("auto is 2.00 times as fast as plain decoding on 40 prompts; every text"));
  EXPECT_THAT(page, HasSubstr("auto is 4.00 times as fast as llama.cpp&#39;s best mode (llama:plain; "));
  EXPECT_THAT(page, HasSubstr(">llama:plain</th><td>0.50</td>"));
  EXPECT_THAT(page, HasSubstr("<td>39 of 40</td><td>–</td><td>–</td><td>–</td>"));
  EXPECT_THAT(page, HasSubstr("compared\nwith those of llama-server's own plain mode"));
  EXPECT_THAT(page, HasSubstr("answer of auto to prompt"));
  EXPECT_THAT(page, Not(HasSubstr("<h3>llama:")));  // its drafts are not known by position
  EXPECT_THAT(page, HasSubstr("--methods none,auto "));
  EXPECT_THAT(page, HasSubstr("--llama-server bin/llama-server "));
  EXPECT_THAT(page, HasSubstr("--llama-modes plain,ngram-mod "));
  EXPECT_THAT(page, HasSubstr(">b123<"));
  result.methods[3] = "llama:ngram-map-k4v";
  EXPECT_THAT(page_of(result, options), HasSubstr(">llama:ngram-map-k4v</text>"));  // not cut short
  EXPECT_THAT(page_of(make_result({})), Not(HasSubstr("llama")));
}

TEST(SpecReport, SaysWhatEachMethodIsComparedWith) {
  SpecBenchOptions options;
  options.llama_server.program = "bin/llama-server";
  const nlohmann::ordered_json json = spec_bench_json(options, with_llama_server());
  const auto& methods = json.at("methods");
  EXPECT_EQ(methods.at("auto").at("text_reference"), "none");
  EXPECT_EQ(methods.at("llama:ngram-mod").at("text_reference"), "llama:plain");
  EXPECT_EQ(methods.at("llama:ngram-mod").at("speed_reference"), "none");
  EXPECT_EQ(methods.at("llama:ngram-mod").at("identical"), 40);
  EXPECT_EQ(methods.at("llama:ngram-mod").at("drafted"), 360);
  EXPECT_FALSE(methods.at("llama:ngram-mod").contains("accept_rate"));
  EXPECT_TRUE(methods.at("auto").contains("accept_rate"));
  EXPECT_EQ(json.at("llama_server").at("version"), "b123");
  EXPECT_EQ(json.at("llama_server").at("modes").at("ngram-mod").dump(),
            R"(["--spec-type","ngram-mod"])");
  EXPECT_EQ(json.at("against_llama_server").at("method"), "auto");
  EXPECT_EQ(json.at("against_llama_server").at("mode"), "llama:plain");
  EXPECT_DOUBLE_EQ(json.at("against_llama_server").at("ratio"), 4);
  EXPECT_FALSE(spec_bench_json({}, make_result({})).contains("llama_server"));
}

TEST(SpecPage, TellsHowToRepeatIt) {
  SpecBenchOptions options;
  options.engine.model = "smollm2";
  options.batch = 4;
  options.generation.max_tokens = 77;
  options.generation.sampling.temperature = 0.7f;
  options.generation.sampling.seed = 9;
  options.engine.speculation.options = {{"pld-ngram", "3"}};
  options.engine.speculation.accept = "target";
  options.engine.speculation.datastores = {"a store"};
  options.engine.kv_type = "q8_0";
  options.engine.pin_threads = false;
  options.engine.exact = true;
  options.generation.sampling.top_k = 5;
  options.generation.sampling.logit_bias = {{TokenId{3}, -2.5f}};
  options.generation.stop = {"\n\n", "end"};
  options.generation.ignore_eos = true;
  options.prompt_origin = {.path = "my prompts.jsonl", .hash = 0xabc, .limit = 40, .mix = 0.25};
  options.live_folder = "live";
  SpecBenchResult result = make_result({});
  result.n_context = 512;
  const std::string page = page_of(result, options);
  for (const char* part : {"--model smollm2 ",
                           "--prompts &#39;my prompts.jsonl&#39; ",
                           "--limit 40 ",
                           "--mix 0.25 ",
                           "leaves its category with chance 0.25",
                           "--methods none,pld,auto ",
                           "--batch 4 ",
                           "--predict 77 ",
                           "--stop &#39;\n\n&#39; ",
                           "--stop end ",
                           "--ignore-eos ",
                           "--temp 0.7 ",
                           "--top-k 5 ",
                           "--logit-bias 3=-2.5 ",
                           "--seed 9 ",
                           "--threads 2 ",
                           "--no-pin ",
                           "--exact ",
                           "--ctx-size 512 ",
                           "--kv-type q8_0 ",
                           "--accept target ",
                           "--datastore &#39;a store&#39; ",
                           "--live live ",
                           "--pld-ngram 3<",
                           "the rule “target”",
                           "my prompts.jsonl (hash 0000000000000abc)"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  for (const char* part : {"--top-p", "--min-p", "--repeat-penalty", "--llama"}) {
    EXPECT_THAT(page, Not(HasSubstr(part)));
  }
}

}  // namespace
}  // namespace forerun
