// A drafting method that proposes what a test tells it to.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/test_tokens.h"
#include "draft/drafter.h"

namespace forerun::test {

// A request of which nothing but the length is needed.
class ShortText final : public RequestView {
 public:
  std::span<const TokenId> text() const override { return text_; }
  size_t n_prompt() const override { return text_.size(); }
  SequenceId sequence() const override { return SequenceId{0}; }
  const Sampler& sampler() const override { return sampler_; }
  const SamplerState& state() const override { return state_; }
  bool compares_distributions() const override { return false; }

 private:
  std::vector<TokenId> text_ = ids({1, 2, 3});
  Sampler sampler_{{}, 100};
  SamplerState state_ = sampler_.state_after(text_);
};

// Proposes what it is told to.
struct Script {
  std::vector<std::vector<int>> chains;
  DraftSource source = DraftSource::kInput;
  bool draws = false;
  double rate = 0;                  // that it expects
  std::vector<DraftJob> jobs = {};  // that were asked of it
};

class ScriptedMethod final : public DraftMethod {
 public:
  explicit ScriptedMethod(Script& script) : script_(script) {}
  std::unique_ptr<Drafter> begin(std::span<const TokenId> /*prompt*/) override {
    return std::make_unique<ScriptedDrafter>(script_);
  }
  void draft(std::span<const DraftJob> jobs) override {
    script_.jobs.insert(script_.jobs.end(), jobs.begin(), jobs.end());
    DraftMethod::draft(jobs);
  }

 private:
  class ScriptedDrafter final : public Drafter {
   public:
    explicit ScriptedDrafter(const Script& script) : script_(script) {}
    void draft(const DraftLimits& limits, DraftTree& tree) override {
      if (script_.draws) tree.set_distribution(kRoot, {});
      for (const auto& chain : script_.chains) {
        int32_t at = kRoot;
        for (const int token : chain) {
          if (tree.size() == limits.max_nodes) return;
          at =
              tree.add({.token = TokenId{token}, .parent = at, .score = 0.5f, .source = script_.source});
        }
      }
    }
    void append(std::span<const TokenId> /*tokens*/) override {}
    double expected_rate(int /*n_requests*/) const override { return script_.rate; }

   private:
    const Script& script_;
  };
  Script& script_;
};

}  // namespace forerun::test
