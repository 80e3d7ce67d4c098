// The parts of the page that are words and tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "bench/page/parts.h"
#include "bench/spec/report.h"
#include "pictures/svg_plot.h"
#include "text/utf8.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kNothing = "–";

// ---- What came out ----

// Of ours that draft.
size_t fastest_method(const SpecPageData& data) {
  const auto slower = [](const SpecSummary& a, const SpecSummary& b) { return a.speedup < b.speedup; };
  const auto begin = data.summaries.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(data.n_own());
  return static_cast<size_t>(std::max_element(begin + 1, end, slower) - begin);
}

// The method that the first sentence is about: auto if it was measured, else the fastest.
size_t chief_method(const SpecPageData& data) {
  const std::vector<std::string>& names = data.result.methods;
  const auto found = std::find(names.begin(), names.end(), "auto");
  return found != names.end() ? static_cast<size_t>(found - names.begin()) : fastest_method(data);
}

std::string same_text_words(const SpecPageData& data) {
  int64_t n_texts = 0, n_same = 0;
  for (size_t m = 1; m < data.n_own(); ++m) {
    n_texts += data.summaries[m].n_prompts;
    n_same += data.summaries[m].n_identical;
  }
  if (n_same == n_texts) return "every text is the same";
  return fmt::format("{} of {} texts differ from those of plain decoding", grouped(n_texts - n_same),
                     grouped(n_texts));
}

std::string headline(const SpecPageData& data) {
  if (data.result.prompts.empty() || data.n_methods() == 0) return "Nothing was measured.";
  const std::string prompts = counted(static_cast<int64_t>(data.result.prompts.size()), "prompt");
  if (data.n_own() == 1) {
    return fmt::format(
        "Plain decoding gives {} tokens per second on {}; no drafting method was measured.",
        fixed(data.summaries[kPlainMethod].tokens_per_second, 1), prompts);
  }
  const size_t chief = chief_method(data);
  const SpecSummary& s = data.summaries[chief];
  const size_t fastest = fastest_method(data);
  std::string aside;
  if (fastest != chief) {
    aside = fmt::format(" ({}, the fastest: {})", data.name(fastest),
                        fixed(data.summaries[fastest].speedup, 2));
  }
  const bool unclear = s.speedup_interval.low <= 1 && s.speedup_interval.high >= 1;
  if (unclear) aside += ", a difference that may be chance (the 95\u00A0% interval includes 1)";
  return fmt::format("{} is {} times as fast as plain decoding on {}{}; {}.", data.name(chief),
                     fixed(s.speedup, 2), prompts, aside, same_text_words(data));
}

std::string method_row(const SpecPageData& data, size_t method) {
  const SpecSummary& s = data.summaries[method];
  const auto ours_only = [&](const std::string& cell) {
    return data.result.is_peer(method) ? std::string(kNothing) : cell;
  };
  const std::string interval =
      method == kPlainMethod
          ? std::string(kNothing)
          : fmt::format("{} to {}", fixed(s.speedup_interval.low, 2), fixed(s.speedup_interval.high, 2));
  const std::vector<std::string> cells{
      fixed(s.speedup, 2),
      interval,
      fixed(s.speedup_total, 2),
      fixed(s.tokens_per_second, 1),
      fixed(s.speculation.tokens_per_step(), 2),
      s.drafts.n_tested > 0 ? percent(s.speculation.accept_rate()) : std::string(kNothing),
      fmt::format("{} of {}", s.n_identical, s.n_prompts),
      ours_only(percent(s.draft_share)),
      ours_only(percent(s.pass_share)),
      ours_only(percent(s.sample_share))};
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", markup_text(data.name(method)),
                     fmt::join(cells, "</td><td>"));
}

std::string method_table(const SpecPageData& data) {
  std::string html = R"(<div class="scroll" tabindex="0" role="region" aria-label="Methods">
<table class="methods"><thead><tr><th scope="col">method</th><th scope="col">speedup</th>
<th scope="col">95 %<br/>interval</th><th scope="col">with<br/>prompts</th><th scope="col">tokens/s</th>
<th scope="col">tokens<br/>per pass</th><th scope="col">accepted<br/>of tested</th>
<th scope="col">same<br/>text</th><th scope="col">drafting</th><th scope="col">computing</th>
<th scope="col">choosing</th></tr></thead><tbody>
)";
  for (size_t m = 0; m < data.n_methods(); ++m) html += method_row(data, m);
  html += R"(</tbody></table></div>
<p class="note">Speedup: plain decoding's time for the answers over the method's; above 1 is faster.
With prompts: the same, with the time to read the prompts. Tested: drafted tokens that were compared
with the model's own. Same text: answers that are plain decoding's, token by token. Drafting, computing,
choosing: shares of the time for the answers.</p>
)";
  return data.n_own() == data.n_methods() ? html
                                          : html + R"(<p class="note">llama: modes of llama-server.
Their speedup is over the same plain decoding, forerun's (none), per token; their texts are compared
with those of llama-server's own plain mode (llama:plain).</p>
)";
}

// ---- A text and where its tokens came from ----

using Origin = std::optional<DraftSource>;

struct OriginStyle {
  Origin origin;
  std::string_view css_class;
  std::string_view words;
};
constexpr std::array<OriginStyle, 8> kOrigins{{
    {std::nullopt, "", "the model itself"},
    {DraftSource::kInput, "input", "the input"},
    {DraftSource::kDatastore, "datastore", "the datastore"},
    {DraftSource::kGuess, "guess", "a guess"},
    {DraftSource::kLayers, "layers", "the model's own layers"},
    {DraftSource::kDraftModel, "draft-model", "a smaller model"},
    {DraftSource::kPrediction, "prediction", "a text that was expected"},
    {DraftSource::kGrammar, "grammar", "what the grammar forces"},
}};
static_assert(kOrigins.size() == kDraftSources + 1);

std::string marked(const Origin& origin, const std::string& text) {
  if (text.empty()) return "";
  if (!origin) return markup_text(text);
  const auto* style = std::find_if(kOrigins.begin(), kOrigins.end(),
                                   [&](const OriginStyle& known) { return known.origin == origin; });
  return fmt::format("<mark class=\"{}\">{}</mark>", style->css_class, markup_text(text));
}

// The text in runs of one origin each. A character that several tokens make belongs to the
// one that completes it.
std::string coloured_text(const std::vector<std::string>& pieces, const std::vector<Origin>& origins) {
  Utf8Stream stream;
  std::string html, run;
  Origin current;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string text = stream.push(pieces[i]);
    const Origin origin = i < origins.size() ? origins[i] : std::nullopt;
    if (origin != current) {
      html += marked(current, run);
      run.clear();
      current = origin;
    }
    run += text;
  }
  return html + marked(current, run + stream.flush());
}

std::string origin_legend(const std::vector<Origin>& origins) {
  std::string html = "<ul class=\"legend\">";
  for (const OriginStyle& style : kOrigins) {
    const auto n = std::count(origins.begin(), origins.end(), style.origin);
    const double share = static_cast<double>(n) / static_cast<double>(origins.size());
    const std::string words(style.words);
    html += fmt::format("<li>{} {}</li>", marked(style.origin, words), percent(share));
  }
  return html + "</ul>\n";
}

}  // namespace

std::string summary_section(const SpecPageData& data, const Json& json) {
  std::string html = fmt::format("<h1>Drafting methods compared</h1>\n<p class=\"lead\">{}</p>\n",
                                 markup_text(headline(data)));
  if (const std::string words = peer_words(data.result); !words.empty()) {
    html += fmt::format("<p class=\"lead\">{}.</p>\n", markup_text(words));
  }
  const std::string device = setting(json, "device_description");
  html +=
      fmt::format("<p class=\"note\">Model: {}. Device: {}.</p>\n", markup_text(setting(json, "model")),
                  markup_text(device.empty() ? setting(json, "device") : device));
  html += method_table(data);
  const std::string accept = json.value("accept", "match");
  if (accept != "match") {
    html += fmt::format(
        "<p class=\"note\">Drafts were accepted by the rule “{}”, which keeps the "
        "distribution of texts, not each text. Texts of other lengths take other times.</p>\n",
        markup_text(accept));
  }
  return html;
}

std::string sample_section(const SpecBenchResult& result) {
  std::string html = "<h2>Where a text came from</h2>\n";
  if (result.pieces.empty() || result.n_own() == 0 || result.sample_prompt >= result.prompts.size()) {
    return html + "<p>There is no text to show.</p>\n";
  }
  const size_t method = result.n_own() - 1;
  const BenchPrompt& prompt = result.prompts[result.sample_prompt];
  const std::vector<Origin>& origins = result.runs[method][result.sample_prompt].origins;
  std::string name = prompt.id.empty() ? fmt::format("{}", result.sample_prompt + 1) : prompt.id;
  if (!prompt.category.empty()) name += fmt::format(" ({})", prompt.category);
  const bool drafted =
      std::any_of(origins.begin(), origins.end(), [](const Origin& o) { return o.has_value(); });
  html += fmt::format(
      "<p>The answer of {} to prompt {}{}</p>\n", markup_text(result.methods[method]), markup_text(name),
      drafted ? ", the one with the most tokens from drafts. The model checked every token."
              : ". No token of it had been drafted.");
  if (!origins.empty()) html += origin_legend(origins);
  return html + fmt::format("<div class=\"sample\" dir=\"auto\">{}</div>\n",
                            coloured_text(result.pieces, origins));
}

}  // namespace forerun
