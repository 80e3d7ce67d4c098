#include "draft/text/forced.h"

#include <algorithm>

namespace forerun {
namespace {

// How sure it is of a token: the model may divide the same text into other ones.
constexpr float kForced = 0.95f;

class ForcedDrafter final : public RequestDrafter {
 public:
  explicit ForcedDrafter(const RequestView& request) : request_(request) {}

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const std::vector<TokenId> forced = request_.state().constraint()->forced();
    const auto most = static_cast<size_t>(std::min(limits.max_nodes, limits.max_depth));
    int32_t parent = kRoot;
    float score = 1;
    for (size_t i = 0; i < std::min(most, forced.size()); ++i) {
      score *= kForced;
      parent = tree.add(
          {.token = forced[i], .parent = parent, .score = score, .source = DraftSource::kGrammar});
    }
  }

  // The state of the request has moved on.
  void append(std::span<const TokenId>) override {}

 private:
  const RequestView& request_;
};

}  // namespace

std::unique_ptr<RequestDrafter> make_forced_drafter(const RequestView& request) {
  return std::make_unique<ForcedDrafter>(request);
}

}  // namespace forerun
