// The parts of the page that are plots.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "bench/page/parts.h"
#include "core/median.h"
#include "pictures/svg_plot.h"

namespace forerun {
namespace {

int style_of(size_t method) {
  return method == kPlainMethod ? kPlainStyle : static_cast<int>(method) - 1;
}

std::string figure(const std::string& title, const std::string& svg) {
  return fmt::format("<figure><h3>{}</h3>\n{}</figure>\n", markup_text(title), svg);
}

// ---- Speed by category ----

struct BarGroup {
  std::string title;
  std::vector<PlotBar> bars;
};

BarGroup bar_group(const SpecPageData& data, const std::optional<std::string>& category) {
  BarGroup group;
  int n_prompts = 0;
  // Plain decoding is the line at 1, unless there is nothing else.
  for (size_t m = data.n_methods() > 1 ? 1 : 0; m < data.n_methods(); ++m) {
    const SpecSummary s = category ? data.result.summary(m, category) : data.summaries[m];
    n_prompts = s.n_prompts;
    group.bars.push_back({.name = data.name(m),
                          .style = style_of(m),
                          .value = s.speedup,
                          .low = s.speedup_interval.low,
                          .high = s.speedup_interval.high});
  }
  const std::string name = !category ? "all prompts" : category->empty() ? "no category" : *category;
  group.title = fmt::format("{} ({})", name, grouped(n_prompts));
  return group;
}

// All prompts, then each category where there are several or the one has a name.
std::vector<BarGroup> bar_groups(const SpecPageData& data) {
  const std::vector<std::string> categories = data.result.categories();
  const bool only_one = categories.size() == 1;
  std::vector<BarGroup> groups;
  if (!only_one || categories[0].empty()) groups.push_back(bar_group(data, std::nullopt));
  for (const std::string& category : categories) {
    if (!only_one || !category.empty()) groups.push_back(bar_group(data, category));
  }
  return groups;
}

// ---- Methods of ours that draft ----

std::vector<size_t> drafting_methods(const SpecPageData& data) {
  std::vector<size_t> methods;
  for (size_t m = 1; m < data.n_own(); ++m) {
    if (data.summaries[m].drafts.n_drafted > 0) methods.push_back(m);
  }
  return methods;
}

// Names the other methods, for the note below a plot.
std::string idle_words(const SpecPageData& data, const std::vector<size_t>& drafting) {
  std::vector<std::string> names;
  for (size_t m = 1; m < data.n_own(); ++m) {
    if (std::find(drafting.begin(), drafting.end(), m) == drafting.end()) {
      names.push_back(markup_text(data.name(m)));
    }
  }
  return names.empty() ? "" : fmt::format(" Drafted nothing: {}.", fmt::join(names, ", "));
}

constexpr std::string_view kNoDrafts = "<p>No tokens were drafted.</p>\n";

// ---- Accepted by position ----

constexpr int64_t kFewTested = 30;

struct PositionSeries {
  PlotSeries shares;
  PlotSeries counts;
};

PositionSeries position_series(const SpecPageData& data, size_t method) {
  PositionSeries series;
  series.shares.style = series.counts.style = style_of(method);
  const std::vector<DraftCounts>& depths = data.summaries[method].speculation.by_depth;
  for (size_t i = 0; i < depths.size(); ++i) {
    const DraftCounts& counts = depths[i];
    if (counts.n_tested <= 0) continue;
    const double share = static_cast<double>(counts.n_accepted) / static_cast<double>(counts.n_tested);
    PlotPoint point{
        .x = static_cast<double>(i + 1),
        .y = share,
        .label = fmt::format("{}, position {}: {} of {} accepted ({})", data.name(method), i + 1,
                             grouped(counts.n_accepted), grouped(counts.n_tested), percent(share)),
        .hollow = counts.n_tested < kFewTested};
    series.shares.points.push_back(point);
    point.y = static_cast<double>(counts.n_tested);
    series.counts.points.push_back(std::move(point));
  }
  return series;
}

std::string legend(const SpecPageData& data, const std::vector<size_t>& methods) {
  std::string html = "<ul class=\"legend\">";
  for (const size_t m : methods) {
    html += fmt::format("<li>{}{}</li>", legend_mark(style_of(m)), markup_text(data.name(m)));
  }
  return html + "</ul>\n";
}

// ---- Tree size and time ----

constexpr double kLongestShown = 3;  // times plain decoding

double ms_per_token(const SpecRun& run) {
  return run.tokens.empty() ? 0 : run.decode_ms / static_cast<double>(run.tokens.size());
}

// A point per prompt: drafted tokens per pass, and time per token relative to plain decoding.
std::vector<PlotPoint> cost_points(const SpecBenchResult& result, size_t method) {
  std::vector<PlotPoint> points;
  for (size_t i = 0; i < result.prompts.size(); ++i) {
    const SpecRun& run = result.runs[method][i];
    const double own = ms_per_token(run), plain = ms_per_token(result.runs[kPlainMethod][i]);
    if (own <= 0 || plain <= 0 || run.speculation.n_steps <= 0) continue;
    points.push_back(
        {.x = static_cast<double>(run.drafts.n_drafted) / static_cast<double>(run.speculation.n_steps),
         .y = own / plain});
  }
  return points;
}

// Medians of groups of neighbouring points, about equally many in each. Points with the same
// x stay together.
std::vector<PlotPoint> medians(std::vector<PlotPoint> points) {
  constexpr size_t kLeast = 8, kMostGroups = 4;
  std::vector<PlotPoint> line;
  if (points.size() < 2 * kLeast) return line;
  const size_t group_size = std::max(kLeast, points.size() / kMostGroups);
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  std::vector<double> x, y;
  for (size_t i = 0; i < points.size(); ++i) {
    x.push_back(points[i].x);
    y.push_back(points[i].y);
    const size_t n_left = points.size() - i - 1;
    const bool full = x.size() >= group_size && n_left >= group_size && points[i + 1].x > points[i].x;
    if (!full && n_left > 0) continue;
    const double middle_x = median(std::exchange(x, {})), middle_y = median(std::exchange(y, {}));
    line.push_back({.x = middle_x,
                    .y = middle_y,
                    .label = fmt::format("{:.1f} drafted tokens per pass: {:.2f}", middle_x, middle_y)});
  }
  return line;
}

}  // namespace

std::string category_section(const SpecPageData& data) {
  std::vector<BarGroup> groups = bar_groups(data);
  PlotAxis axis{.title = "times as fast as plain decoding", .high = 1.2};
  for (const BarGroup& group : groups) {
    for (const PlotBar& bar : group.bars) {
      for (const double end : {bar.value, bar.high}) {
        if (std::isfinite(end)) axis.high = std::max(axis.high, end);
      }
    }
  }
  std::string html =
      fmt::format("<h2>Speed{}</h2>\n<div class=\"panels\">\n", groups.size() > 1 ? " by category" : "");
  for (BarGroup& group : groups) {
    html += figure(group.title, bar_plot({.title = "Speedup of each method: " + group.title,
                                          .axis = axis,
                                          .rule = 1.0,
                                          .bars = std::move(group.bars)}));
  }
  return html +
         "</div>\n<p class=\"note\">In brackets: prompts. Thin lines: 95\u00A0% intervals over prompts. "
         "Dashed: plain decoding.</p>\n";
}

std::string position_section(const SpecPageData& data) {
  std::string html = "<h2>Accepted by position</h2>\n";
  const std::vector<size_t> methods = drafting_methods(data);
  if (methods.empty()) return html.append(kNoDrafts);
  PlotAxis x{.title = "position in the draft", .scale = AxisScale::kWhole, .low = 1, .high = 1};
  PlotAxis n_tested{.title = "tested tokens (log scale)", .scale = AxisScale::kLog, .low = 1};
  std::vector<PlotSeries> shares, counts;
  for (const size_t m : methods) {
    PositionSeries series = position_series(data, m);
    for (const PlotPoint& point : series.counts.points) {
      x.high = std::max(x.high, point.x);
      n_tested.high = std::max(n_tested.high, point.y);
    }
    shares.push_back(std::move(series.shares));
    counts.push_back(std::move(series.counts));
  }
  html += legend(data, methods) + "<div class=\"panels two\">\n";
  html += figure("How many are accepted",
                 xy_plot({.title = "Accepted of tested tokens, by position in the draft",
                          .x = x,
                          .y = {.title = "accepted of tested", .scale = AxisScale::kPercent},
                          .rule = {},
                          .series = std::move(shares)}));
  html += figure("How many are tested", xy_plot({.title = "Tested tokens, by position in the draft",
                                                 .x = x,
                                                 .y = n_tested,
                                                 .rule = {},
                                                 .series = std::move(counts)}));
  return html + fmt::format(
                    "</div>\n<p class=\"note\">Position 1 follows the text at once. A token is tested "
                    "when all before it were accepted. Hollow: fewer than {} tested.{}</p>\n",
                    kFewTested, idle_words(data, methods));
}

std::string size_section(const SpecPageData& data) {
  std::string html = "<h2>Tree size and time</h2>\n";
  const std::vector<size_t> methods = drafting_methods(data);
  if (methods.empty()) return html.append(kNoDrafts);
  PlotAxis x{.title = "drafted tokens per pass"};
  PlotAxis y{.title = "time per token (plain: 1)", .high = 1.2};
  std::vector<std::vector<PlotPoint>> clouds;
  int64_t n_beyond = 0;
  for (const size_t m : methods) {
    clouds.push_back(cost_points(data.result, m));
    for (const PlotPoint& point : clouds.back()) {
      x.high = std::max(x.high, point.x);
      y.high = std::max(y.high, std::min(point.y, kLongestShown));
      n_beyond += point.y > kLongestShown ? 1 : 0;
    }
  }
  html += "<div class=\"panels\">\n";
  for (size_t i = 0; i < methods.size(); ++i) {
    const std::string& name = data.name(methods[i]);
    const int style = style_of(methods[i]);
    std::vector<PlotPoint> line = medians(clouds[i]);
    html += figure(name,
                   xy_plot({.title = name + ": time per token against drafted tokens per pass",
                            .width = 340,
                            .height = 250,
                            .x = x,
                            .y = y,
                            .rule = 1.0,
                            .series = {{.style = style, .joined = false, .points = std::move(clouds[i])},
                                       {.style = kInkStyle, .points = std::move(line)}}}));
  }
  html +=
      "</div>\n<p class=\"note\">A dot is a prompt, compared with the same prompt without drafts: below "
      "the dashed line it was faster. The line joins medians of neighbouring dots.";
  if (n_beyond > 0) {
    html += fmt::format(" At the upper edge: {} that took over {} times as long.",
                        counted(n_beyond, "prompt"), kLongestShown);
  }
  return html + idle_words(data, methods) + "</p>\n";
}

}  // namespace forerun
