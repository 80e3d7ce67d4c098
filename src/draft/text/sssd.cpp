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

// Per level of a tree: the longer the match, the longer its continuations stay good.
float level_factor(int match_length) {
  return std::min(0.6f + 0.1f * static_cast<float>(match_length), 1.0f);
}

RetrievalVariant variant_of(const SssdOptions& options) {
  const auto variant = retrieval_variant(options.variant);
  if (!variant) {
    fail(ErrorCode::kInvalidArgument, "'{}' is no variant of SSSD: choose paper, code or pooled",
         options.variant);
  }
  return *variant;
}

InputTrieOptions input_options(const SssdOptions& options) {
  const bool ours = variant_of(options) == RetrievalVariant::kPooled;
  InputTrieOptions result;
  result.rule = ours ? WindowRule::kGrowing : WindowRule::kComplete;
  result.max_match = options.input_prefix;
  result.window = options.input_window > 0 ? options.input_window : (ours ? 16 : 8);
  return result;
}

// Datastores beat the text only where windows of the text come late.
float input_discount(const SssdOptions& options) {
  if (options.input_discount > 0.0) return static_cast<float>(options.input_discount);
  return variant_of(options) == RetrievalVariant::kPooled ? 1.0f : 0.6f;
}

class SssdRequestDrafter : public RequestDrafter {
 public:
  SssdRequestDrafter(const SssdOptions& options, const SegmentSource& segments,
                     std::span<const TokenId> prompt)
      : options_(options),
        segments_(segments),
        trie_(input_options(options)),
        search_({variant_of(options), options.prefix, options.samples, options.min_samples}) {
    trie_.put(prompt);
  }

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    if (limits.max_nodes < 1 || limits.max_depth < 1) return;
    const auto snapshot = limits.from_stores && segments_ ? segments_() : nullptr;
    segments_now_.clear();
    if (snapshot) {
      for (const auto& segment : *snapshot) segments_now_.push_back(segment.get());
    }
    sources_.clear();
    const int branch = options_.branch > 0 ? options_.branch : sssd_branch(limits.max_nodes);
    const ContinuationTrie& continuations =
        search_.search(segments_now_, trie_.text(), std::min(branch, limits.max_depth));
    sources_.push_back({&continuations, ContinuationTrie::kRootHandle, DraftSource::kDatastore, 0,
                        search_.confidence(), 1.0f});

    matches_.clear();
    trie_.find(trie_.text(), matches_);
    for (const InputTrie::Match& match : matches_) {
      sources_.push_back({&trie_, match.handle, DraftSource::kInput, match.length,
                          input_discount(options_), level_factor(match.length)});
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

void SssdOptions::describe(OptionVisitor& visitor) {
  visitor.visit({"variant", "Whom to follow where the paper, its code and we differ"}, variant,
                kRetrievalVariantNames);
  visitor.visit({"prefix", "Last tokens of the text to search for in datastores"}, prefix,
                {1, Segment::kOrderDepth});
  visitor.visit({"samples", "Continuations to look at per prefix"}, samples, {1, 10000});
  visitor.visit({"min-samples", "Search a shorter prefix too below so many samples"}, min_samples,
                {1, 10000});
  visitor.visit({"branch", "Tokens to read behind each place (0: by the size of the tree)"}, branch,
                {0, 64});
  visitor.visit({"input-prefix", "Last tokens of the text to search for in the text itself"},
                input_prefix, {1, 32});
  visitor.visit({"input-window", "Tokens to read there, those searched for among them (0: by variant)"},
                input_window, {0, 64});
  visitor.visit({"children", "Limit on the children of a node"}, children, {1, 1000});
  visitor.visit({"input-discount", "Factor of what the text itself shows (0: by variant)"},
                input_discount, {0.0, 1.0});
}

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
  variant_of(options_);
}

std::unique_ptr<RequestDrafter> SssdDrafter::begin(std::span<const TokenId> prompt) {
  return std::make_unique<SssdRequestDrafter>(options_, segments_, prompt);
}

}  // namespace forerun
