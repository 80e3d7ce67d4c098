#include "draft/text/sssd.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "retrieval/continuation_search.h"
#include "retrieval/fusion.h"
#include "retrieval/input_trie.h"

namespace forerun {
namespace {

bool is_ours(const SssdOptions& options) {
  return retrieval_variant(options.variant) == RetrievalVariant::kPooled;
}

class SssdRequestDrafter : public RequestDrafter {
 public:
  SssdRequestDrafter(const SssdOptions& options, const SegmentSource& segments,
                     std::span<const TokenId> prompt)
      : options_(options),
        segments_(segments),
        trie_({.rule = is_ours(options) ? WindowRule::kGrowing : WindowRule::kComplete,
               .max_match = options.input_prefix,
               .window = options.input_window}),
        search_({*retrieval_variant(options.variant), options.prefix, options.samples,
                 options.min_samples}) {
    trie_.put(prompt);
  }

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    if (limits.max_nodes < 1 || limits.max_depth < 1) return;
    const auto snapshot = limits.from_stores && segments_ ? segments_() : nullptr;
    segments_now_.clear();
    if (snapshot) {
      for (const auto& segment : *snapshot) segments_now_.push_back(segment.get());
    }
    const int branch = options_.branch > 0 ? options_.branch : sssd_branch(limits.max_nodes);
    const ContinuationTrie& continuations =
        search_.search(segments_now_, trie_.text(), std::min(branch, limits.max_depth));
    sources_.assign(1, {&continuations, ContinuationTrie::kRootHandle, DraftSource::kDatastore, 0,
                        search_.confidence(), 1.0f});
    matches_.clear();
    trie_.find(trie_.text(), matches_);
    for (const InputTrie::Match& match : matches_) {
      // Per level of the tree: the longer the match, the longer its continuations stay good.
      const float factor = std::min(0.6f + 0.1f * static_cast<float>(match.length), 1.0f);
      sources_.push_back({&trie_, match.handle, DraftSource::kInput, match.length,
                          static_cast<float>(options_.input_discount), factor});
    }
    fusion_.fuse(sources_, {limits.max_nodes, limits.max_depth, options_.children}, tree);
  }

  void append(std::span<const TokenId> tokens) override { trie_.append(tokens); }

 private:
  const SssdOptions& options_;
  const SegmentSource& segments_;
  InputTrie trie_;
  ContinuationSearch search_;
  Fusion fusion_;
  std::vector<const Segment*> segments_now_;
  std::vector<InputTrie::Match> matches_;
  std::vector<FusionSource> sources_;
};

}  // namespace

int sssd_branch(int max_nodes) {
  // As the authors' server, whose sizes include the root.
  if (max_nodes <= 4) return max_nodes;
  if (max_nodes <= 7) return 5;
  if (max_nodes <= 31) return 6;
  if (max_nodes <= 47) return 8;
  return 10;
}

SssdDrafter::SssdDrafter(SssdOptions options, SegmentSource segments)
    : options_(std::move(options)), segments_(std::move(segments)) {
  if (!retrieval_variant(options_.variant)) {
    fail(ErrorCode::kInvalidArgument, "'{}' is no variant of SSSD: choose paper, code or pooled",
         options_.variant);
  }
  if (options_.input_window == 0) options_.input_window = is_ours(options_) ? 16 : 8;
  // Datastores beat the text only where windows of the text come late.
  if (options_.input_discount == 0.0) options_.input_discount = is_ours(options_) ? 1.0 : 0.6;
}

std::unique_ptr<RequestDrafter> SssdDrafter::begin(std::span<const TokenId> prompt) {
  return std::make_unique<SssdRequestDrafter>(options_, segments_, prompt);
}

}  // namespace forerun
