#include "stopping/disco.h"

namespace forerun {

std::unique_ptr<RequestStoppingRule> DiscoStopping::begin() {
  class OfRequest final : public RequestStoppingRule {
   public:
    explicit OfRequest(const DiscoClassifier& classifier) : classifier_(classifier) {}
    bool goes_on(const DraftedToken& token) override {
      const DiscoRule& rule = classifier_.rule;
      return token.depth < rule.max_tokens &&
             classifier_.network.chance(view_.features(token)) >= rule.threshold;
    }

   private:
    const DiscoClassifier& classifier_;
    DiscoView view_;
  };
  return std::make_unique<OfRequest>(classifier_);
}

}  // namespace forerun
