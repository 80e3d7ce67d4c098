#include "bench/page/page.h"

#include <fmt/format.h>

#include <cmath>

#include "bench/page/parts.h"
#include "bench/page/style.h"
#include "pictures/svg_plot.h"

namespace forerun {

SpecPageData::SpecPageData(const SpecBenchResult& measured) : result(measured) {
  for (size_t m = 0; m < n_methods(); ++m) summaries.push_back(result.summary(m));
}

std::string fixed(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "–";
}

std::string percent(double share) {
  return fixed(100 * share, 0) + "\u00A0%";
}

std::string spec_page(const nlohmann::ordered_json& json, const SpecBenchResult& result) {
  const SpecPageData data(result);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>Drafting methods compared: {}</title>\n<style>{}</style></head><body>\n",
      markup_text(json.value("model", "")), kSpecPageStyle);
  html += summary_section(data, json);
  html += category_section(data);
  html += position_section(data);
  html += size_section(data);
  html += sample_section(result);
  html += measured_section(data, json);
  return html + "</body></html>\n";
}

}  // namespace forerun
