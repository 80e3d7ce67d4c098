// A distribution that changes: tokens are struck out, another distribution is subtracted.
//
// Weights need not sum to 1; what counts is their share of the total. The results depend
// neither on the order of the candidates nor on the machine. A value; its memory is reused.
#pragma once

#include <cstddef>
#include <vector>

#include "core/ids.h"
#include "sampling/sampler.h"

namespace forerun {

class TokenWeights {
 public:
  // Takes the candidates of `distribution`, which may be none.
  void assign(const Distribution& distribution);

  // The token's share of the total; 0 for a token without weight.
  double share(TokenId token) const;

  // Strikes a token out.
  void remove(TokenId token);

  // Of each share takes away the share in `other`, down to 0. Where nothing would be left,
  // which only rounding can bring about while some token has a larger share in `other`,
  // the weights stay as they are.
  void subtract(const TokenWeights& other);

  // The token at which the running sum of shares, by rising token, exceeds u in [0, 1].
  // Its distribution is the shares if u is uniform. Some weight is above 0.
  TokenId at(double u) const;

 private:
  struct Entry {
    TokenId token;
    double weight;
  };

  size_t find(TokenId token) const;  // entries_.size() if it has no entry

  std::vector<Entry> entries_;  // by rising token
  double total_ = 0;
  std::vector<double> rest_;  // of subtract()
};

}  // namespace forerun
