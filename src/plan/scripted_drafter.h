// A drafter of texts that proposes what a test tells it to.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/test_tokens.h"
#include "draft/model/model_drafter.h"
#include "request/request_view.h"

namespace forerun::test {

// A request of which nothing but the length is needed.
class ShortText final : public RequestView {
 public:
  std::span<const TokenId> text() const override { return text_; }
  size_t n_prompt() const override { return text_.size(); }
  bool ends_answer(TokenId token) const override { return token == end_; }
  SequenceId sequence() const override { return SequenceId{0}; }
  const Sampler& sampler() const override { return sampler_; }
  const SamplerState& state() const override { return state_; }

  void constrain(std::shared_ptr<const Constraint> constraint) {
    state_.constrain(std::move(constraint));
  }
  void set_end(TokenId token) { end_ = token; }

 private:
  std::vector<TokenId> text_ = ids({1, 2, 3});
  Sampler sampler_{{}, 100};
  SamplerState state_ = sampler_.state_after(text_);
  std::optional<TokenId> end_;  // what ends the answer
};

// What time it is to planners that are told so; drafters let it pass.
inline double scripted_now = 0;
inline double scripted_time() {
  return scripted_now;
}

struct Script {
  std::vector<std::vector<int>> chains;
  std::vector<float> scores = {};  // of the chains' nodes; 0.95
  double seconds = 0;              // that it takes
  double store_seconds = 0;        // that it takes besides where it may search datastores
  DraftSource source = DraftSource::kInput;
  int n_drafts = 0;
  int n_searches = 0;  // of datastores
  bool has_drafted = false;
};

class ScriptedDrafter final : public Drafter {
 public:
  explicit ScriptedDrafter(Script& script) : script_(script) {}
  std::unique_ptr<RequestDrafter> begin(std::span<const TokenId> /*prompt*/) override {
    return std::make_unique<OfRequest>(script_);
  }

 private:
  class OfRequest final : public RequestDrafter {
   public:
    explicit OfRequest(Script& script) : script_(script) {}
    void draft(const DraftLimits& limits, DraftTree& tree) override {
      ++script_.n_drafts;
      script_.n_searches += limits.from_stores ? 1 : 0;
      script_.has_drafted = true;
      for (size_t i = 0; i < script_.chains.size(); ++i) {
        int32_t at = kRoot;
        for (const int token : script_.chains[i]) {
          if (tree.size() == limits.max_nodes || tree.depth(at) == limits.max_depth) break;
          const auto known = tree.find_child(at, TokenId{token});
          const float score = i < script_.scores.size() ? script_.scores[i] : 0.95f;
          at = known ? *known
                     : tree.add({.token = TokenId{token},
                                 .parent = at,
                                 .score = score,
                                 .source = script_.source,
                                 .match_length = 4});
        }
      }
      scripted_now += script_.seconds + (limits.from_stores ? script_.store_seconds : 0);
    }
    void append(std::span<const TokenId> /*tokens*/) override {}

   private:
    Script& script_;
  };
  Script& script_;
};

inline DrafterSet scripted(const std::vector<Script*>& scripts) {
  DrafterSet set;
  for (Script* script : scripts) set.texts.push_back(std::make_unique<ScriptedDrafter>(*script));
  return set;
}

}  // namespace forerun::test
