// What is asked of an engine.
#pragma once

#include <forerun/generation_options.h>
#include <forerun/token.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace forerun {

enum class RequestId : int64_t {};  // a request of one engine, in the order they came

// One of an engine's ways to speculate; 0: that of its options.
enum class SpeculationId : int32_t {};

struct BenchmarkRecord;

struct Request {
  std::vector<TokenId> prompt = {};
  GenerationOptions options = {};
  // Both are called by step() and may submit() and cancel(). What they throw ends this request
  // and no other: take() throws it.

  // Gets text as it is made, in whole UTF-8 characters. May be empty.
  std::function<void(std::string_view text)> on_text = {};
  // Asked before every pass; true ends the generation. May be empty.
  std::function<bool()> is_cancelled = {};
  SpeculationId speculation{0};
  // For benchmarks: what they tell the engine, and what it tells them (forerun/benchmark.h). May be
  // null.
  std::shared_ptr<BenchmarkRecord> benchmark = nullptr;
};

}  // namespace forerun
