#include "pictures/svg_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "pictures/markup_check.h"
#include "text/utf8.h"

namespace forerun {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

void expect_inside(const std::string& svg, int width, int height) {
  for (const char* name : {"x", "x1", "x2", "cx"}) {
    for (const double value : attribute_values(svg, name)) {
      EXPECT_GE(value, 0) << name;
      EXPECT_LE(value, width) << name;
    }
  }
  for (const char* name : {"y", "y1", "y2", "cy"}) {
    for (const double value : attribute_values(svg, name)) {
      EXPECT_GE(value, 0) << name;
      EXPECT_LE(value, height) << name;
    }
  }
}

TEST(MarkupText, EscapesAndRepairs) {
  EXPECT_EQ(markup_text("<script>&\"'"), "&lt;script&gt;&amp;&quot;&#39;");
  EXPECT_EQ(markup_text("a\n\tb"), "a\n\tb");
  EXPECT_EQ(markup_text(std::string_view("\0\x1b\x7f", 3)), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(markup_text("\xC3\xA9\xC3"), "é\uFFFD");
}

TEST(MarkupCheck, FindsFaults) {
  EXPECT_EQ(markup_fault("<a b=\"c\">d &amp; e<f/></a>"), "");
  for (const char* bad : {"<a>", "<a></b>", "</a>", "<a b=c/>", "a & b", "a > b", "<a b=\"1\" b=\"2\"/>",
                          "<a b=\"&\"/>", "1 < 2"}) {
    EXPECT_NE(markup_fault(bad), "") << bad;
  }
  EXPECT_TRUE(has_bad_number("<a x=\"nan\"/>"));
  EXPECT_TRUE(has_bad_number("<td>-inf</td>"));
  EXPECT_FALSE(has_bad_number("<td>finance, info, Nancy</td>"));
}

TEST(XyPlot, IsWellFormedAndInsideItsFrameWhateverTheNumbers) {
  std::mt19937 random(3);
  const std::vector<double> odd{0,    1,    -1,        0.3,    1e-300, 1e300, -1e300,    5e9,
                                kNaN, 1e12, kInfinity, 1 / 3., 1e-7,   17,    -kInfinity};
  const auto any = [&] { return odd[random() % odd.size()]; };
  for (int round = 0; round < 300; ++round) {
    XyPlot plot{
        .title = "a < b",
        .x = {.title = "x & y",
              .scale = static_cast<AxisScale>(random() % 4),
              .low = any(),
              .high = any()},
        .y = {.title = "y", .scale = static_cast<AxisScale>(random() % 4), .low = any(), .high = any()},
        .rule = {},
        .series = {}};
    if (random() % 2 == 0) plot.rule = 1;
    for (int s = 0; s < 12; ++s) {
      PlotSeries series{.style = s - 2, .joined = random() % 2 == 0, .points = {}};
      for (size_t n = random() % 5; n > 0; --n) {
        series.points.push_back({.x = any(), .y = any(), .label = "<&>", .hollow = random() % 2 == 0});
      }
      plot.series.push_back(std::move(series));
    }
    const std::string svg = xy_plot(plot);
    ASSERT_EQ(markup_fault(svg), "");
    ASSERT_FALSE(has_bad_number(svg)) << svg;
    expect_inside(svg, plot.width, plot.height);
    ASSERT_LE(count_of(svg, "<text"), 2u + 2 * 30u);  // at most, two log axes of many decades
    if (HasFailure()) FAIL() << svg;
  }
}

TEST(XyPlot, PutsPointsWhereTheAxesSay) {
  const std::string svg =
      xy_plot({.title = "t",
               .x = {.title = "x", .low = 0, .high = 10},
               .y = {.title = "y", .scale = AxisScale::kLog, .low = 1, .high = 100},
               .rule = {},
               .series = {{.joined = false,
                           .points = {{.x = 0, .y = 1}, {.x = 5, .y = 10}, {.x = 10, .y = 100}}}}});
  const std::vector<double> x = attribute_values(svg, "cx"), y = attribute_values(svg, "cy");
  ASSERT_EQ(x.size(), 3u);
  EXPECT_NEAR(x[1], (x[0] + x[2]) / 2, 0.1);
  EXPECT_NEAR(y[1], (y[0] + y[2]) / 2, 0.1);
  EXPECT_LT(y[2], y[0]);  // upwards
  for (const char* tick : {">1<", ">10<", ">100<", ">0<", ">2<", ">8<"})
    EXPECT_THAT(svg, HasSubstr(tick));
}

TEST(XyPlot, WholeAxisHasWholeTicks) {
  const auto ticks_up_to = [](double n) {
    return xy_plot({.title = "t",
                    .x = {.title = "x", .scale = AxisScale::kWhole, .low = 1, .high = n},
                    .y = {.title = "y", .scale = AxisScale::kPercent},
                    .rule = {},
                    .series = {}});
  };
  for (const int n : {1, 2, 3, 7, 24, 200}) {
    const std::string svg = ticks_up_to(n);
    EXPECT_THAT(svg, HasSubstr(">1</text>")) << n;
    EXPECT_THAT(svg, Not(HasSubstr(".5</text>"))) << n;
  }
  EXPECT_THAT(ticks_up_to(3), HasSubstr(">100\u00A0%</text>"));
}

TEST(BarPlot, ShowsNamesValuesAndWhiskers) {
  BarPlot plot;
  plot.title = "t";
  plot.axis.title = "speed";
  plot.axis.high = 2;
  plot.rule = 1.0;
  plot.bars.push_back({.name = "a<b", .style = 0, .value = 1.5, .low = 1.2, .high = 1.8});
  plot.bars.push_back({.name = "none", .style = kPlainStyle, .value = 1});
  plot.bars.push_back({.name = "é1234567890abcdefghijklm", .style = 1, .value = kNaN});
  const std::string svg = bar_plot(plot);
  EXPECT_EQ(markup_fault(svg), "");
  EXPECT_FALSE(has_bad_number(svg));
  EXPECT_TRUE(is_valid_utf8(svg));
  EXPECT_THAT(svg, HasSubstr(">a&lt;b</text>"));
  EXPECT_THAT(svg, HasSubstr(">1.50</text>"));
  EXPECT_THAT(svg, HasSubstr(">é1234567890abcdefghi…</text>"));
  EXPECT_EQ(count_of(svg, "class=\"whisker\""), 1u);
  EXPECT_EQ(count_of(svg, "<rect"), 2u);
  EXPECT_EQ(count_of(svg, "class=\"rule\""), 1u);
  const std::vector<double> widths = attribute_values(svg, "width");
  EXPECT_NEAR(widths[0] / widths[1], 1.5, 0.01);
}

TEST(Styles, DifferByColourOrShape) {
  std::vector<std::string> marks;
  for (int style = kInkStyle; style < 40; ++style) {
    const std::string mark = legend_mark(style);
    EXPECT_EQ(markup_fault(mark), "");
    EXPECT_THAT(marks, Not(testing::Contains(mark)));
    marks.push_back(mark);
  }
}

}  // namespace
}  // namespace forerun
