// The sections of the page of `bench spec`, as HTML, and what they share.
//
// Everything here is also well-formed XML; numbers that are not finite never show.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/spec/bench.h"
#include "core/grouped.h"

namespace forerun {

constexpr size_t kPlainMethod = 0;  // plain decoding is the first

struct SpecPageData {
  explicit SpecPageData(const SpecBenchResult& result);

  const SpecBenchResult& result;
  std::vector<SpecSummary> summaries;  // per method, of all prompts

  size_t n_methods() const { return result.methods.size(); }
  size_t n_own() const { return result.n_own(); }  // ours come first
  const std::string& name(size_t method) const { return result.methods[method]; }
};

std::string fixed(double value, int digits);
std::string percent(double share);
// A value of spec_bench_json() in words; empty if it is not there.
std::string setting(const nlohmann::ordered_json& json, const char* name);

// spec_page_plots.cpp
std::string category_section(const SpecPageData& data);
std::string position_section(const SpecPageData& data);
std::string size_section(const SpecPageData& data);
// spec_page_words.cpp
std::string summary_section(const SpecPageData& data, const nlohmann::ordered_json& json);
std::string sample_section(const SpecBenchResult& result);
// spec_page_setting.cpp
std::string measured_section(const SpecPageData& data, const nlohmann::ordered_json& json);

}  // namespace forerun
