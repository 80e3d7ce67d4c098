// How results are shown: JSON objects, and the line of statistics.
#pragma once

#include <forerun/engine.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace forerun {

nlohmann::ordered_json generation_json(const Generation& generation, std::span<const TokenId> prompt,
                                       const Engine& engine);

// Drafted, tested and accepted tokens, and where the time went.
nlohmann::ordered_json speculation_json(const SpeculationStatistics& statistics);

std::string statistics_line(const Generation& generation, const Engine& engine);

// One line on standard error.
void print_warning(std::string_view message);

// On standard output, at once.
void print_text(std::string_view text);
inline void print_chunk(const Chunk& chunk) {
  print_text(chunk.text);
}

// One line on standard output. Bytes that are no UTF-8 are replaced.
void print_json(const nlohmann::ordered_json& object);

}  // namespace forerun
