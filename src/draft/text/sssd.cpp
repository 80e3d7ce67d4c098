#include "draft/text/sssd.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
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

ContinuationOptions continuation_options(const SssdOptions& options) {
  return {variant_of(options), options.prefix, options.samples, options.min_samples};
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

struct SssdDrafter::Workspace {
  explicit Workspace(const SssdOptions& options) : search(continuation_options(options)) {}

  ContinuationSearch search;
  Fusion fusion;
  std::vector<const Segment*> segments;
  std::vector<InputTrie::Match> matches;
  std::vector<FusionSource> sources;
};

class SssdRequestDrafter : public RequestDrafter {
 public:
  SssdRequestDrafter(SssdDrafter& method, std::span<const TokenId> prompt)
      : method_(method), trie_(input_options(method.options_)) {
    trie_.put(prompt);
  }

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const SssdOptions& options = method_.options_;
    SssdDrafter::Workspace& work = *method_.workspace_;
    if (limits.max_nodes < 1 || limits.max_depth < 1) return;
    const auto snapshot = method_.segments_ ? method_.segments_() : nullptr;
    work.segments.clear();
    if (snapshot) {
      for (const auto& segment : *snapshot) work.segments.push_back(segment.get());
    }
    work.sources.clear();
    const int branch = options.branch > 0 ? options.branch : sssd_branch(limits.max_nodes);
    const ContinuationTrie& continuations =
        work.search.search(work.segments, trie_.text(), std::min(branch, limits.max_depth));
    work.sources.push_back({&continuations, ContinuationTrie::kRootHandle, DraftSource::kDatastore, 0,
                            work.search.confidence(), 1.0f});

    work.matches.clear();
    trie_.find(trie_.text(), work.matches);
    for (const InputTrie::Match& match : work.matches) {
      work.sources.push_back({&trie_, match.handle, DraftSource::kInput, match.length,
                              input_discount(options), level_factor(match.length)});
    }
    work.fusion.fuse(work.sources, {limits.max_nodes, limits.max_depth, options.children}, tree);
  }

  void append(std::span<const TokenId> tokens) override { trie_.append(tokens); }

 private:
  SssdDrafter& method_;
  InputTrie trie_;
};

SssdDrafter::SssdDrafter(const SssdOptions& options, SegmentSource segments)
    : options_(options),
      segments_(std::move(segments)),
      workspace_(std::make_unique<Workspace>(options)) {}

SssdDrafter::~SssdDrafter() = default;

std::unique_ptr<RequestDrafter> SssdDrafter::begin(std::span<const TokenId> prompt) {
  return std::make_unique<SssdRequestDrafter>(*this, prompt);
}

}  // namespace forerun
