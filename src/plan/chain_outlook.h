// What a model's chain is likely to bring before it is drafted.
//
// A model says how sure it is of each token, and a chain ends behind one that it is not sure of. So
// what its drafts bring is more than how often its tokens are right on average: it is how often it is
// sure, behind the text and behind tokens of either kind, and how often it is right then.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace forerun {

// Nothing is certain: without this a lucky streak would draft to the limit.
constexpr double kMaxChance = 0.985;
// What was seen is counted up to here.
constexpr double kMostSeen = 1e6;

// How sure a model is of a token: bins of its probability.
constexpr size_t kSurenessBins = 6;

// What a model's tokens are drafted behind.
enum class DraftedBehind : size_t { kText, kUnsureToken, kSureToken };
constexpr size_t kDraftedBehind = 3;
DraftedBehind behind_token(double probability);

struct ChainOutlook {
  using Bins = std::array<double, kSurenessBins>;
  std::array<Bins, kDraftedBehind> shares;  // of tokens, by how sure the model is
  Bins chances;                             // that such a token is right

  const Bins& shares_behind(DraftedBehind behind) const { return shares[static_cast<size_t>(behind)]; }
};

// Learns the outlook of one model's chains from those that were drafted.
class ChainRecord {
 public:
  ChainRecord();

  // How much likelier its tokens are right than those seen here say, in logits, if `agreement` is how
  // often they are as far as that is known otherwise: it counts while few were seen.
  double known_otherwise(std::optional<double> agreement) const;
  // `bias` is a request's, in logits: its drafts do better or worse than others'.
  ChainOutlook outlook(double bias, std::optional<double> agreement = std::nullopt) const;
  // A token that the text could take, and whether it did.
  void observe(DraftedBehind behind, double probability, bool is_right);
  double n_seen() const;

  static constexpr size_t kNumbers = (kDraftedBehind + 2) * kSurenessBins;
  void add_to(std::vector<float>& numbers) const;
  void restore(std::span<const float> numbers);  // kNumbers of them

 private:
  ChainOutlook::Bins chances_;
  ChainOutlook::Bins n_seen_ = {};
  std::array<ChainOutlook::Bins, kDraftedBehind> counts_;  // fading
};

// What texts propose, level by level, of what is worth verifying.
constexpr int kMostLevels = 16;
struct TextLevels {
  std::array<double, kMostLevels> chance = {};  // that the text takes one of the level's nodes
  std::array<int, kMostLevels> n_nodes = {};
};

// In tokens that the same time would bring otherwise.
struct ChainPrices {
  double token;                          // to draft one
  std::array<double, kMostLevels> rows;  // to verify one more, level by level
};

// The prices of rows from what passes of 0, 1, 2, ... further rows cost. Costs have steps, so that one
// more row may not pay where three do: these are the slopes of their lower hull, which never fall.
std::array<double, kMostLevels> row_prices(const std::array<double, kMostLevels + 1>& costs);

// The tokens that drafting on brings, less what it costs, if it goes on as long as that pays, at most
// `n_most` tokens: against verifying what texts propose there. On each level the draft's token is
// verified beside what texts propose, in its place, or not at all, whichever pays most. `reached` is
// the chance that the text comes to the chain's end.
double value_of_drafting(const ChainOutlook& outlook, DraftedBehind behind, double reached,
                         const TextLevels& texts, const ChainPrices& prices, int n_most);

}  // namespace forerun
