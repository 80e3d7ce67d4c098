// Random numbers that are a pure function of (seed, position, token).
//
// A token drawn at a position sees the same noise whoever draws it: plain decoding,
// the verifier at any node of a draft tree, a drafter that samples, in any batch, on
// any thread, on any machine. That is what makes sampled text independent of
// speculation.
//
// The generator is Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw:
// "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011), which passes BigCrush with
// 13. Its key is the seed, its counter (token, position), its output 64 bits: just
// what one token needs, from 32-bit additions, rotations and xors that vectorise on
// every CPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/ids.h"

namespace forerun {

// One block of Threefry-2x32-20.
std::array<uint32_t, 2> threefry2x32(std::array<uint32_t, 2> key, std::array<uint32_t, 2> counter);

// Immutable; safe to use from any thread.
class KeyedNoise {
 public:
  // Tokens per call of fill().
  static constexpr size_t kBlock = 256;

  // 64 random bits per token, as two halves.
  struct Block {
    uint32_t high[kBlock];
    uint32_t low[kBlock];
  };

  explicit KeyedNoise(uint64_t seed) : seed_(seed) {}

  // 64 uniform random bits.
  uint64_t bits(Position position, TokenId token) const;

  // The bits of up to kBlock tokens at once, in any order. Entries of `out` past the
  // last token are left unspecified. Returns the largest of the high halves.
  uint32_t fill(Position position, std::span<const TokenId> tokens, Block& out) const;

  // A standard Gumbel variable, -log(-log u), from 64 random bits; u lies in (0, 1)
  // on a grid of 2^-52, so the result lies in [-3.61, 36.74]. It grows with `bits`
  // except for rounding (kGumbelSlack). The same bits on every machine (ieee_math.h).
  static double gumbel(uint64_t bits);

  // gumbel(a) <= gumbel(b) + kGumbelSlack for all a <= b.
  static constexpr double kGumbelSlack = 1e-12;

 private:
  uint64_t seed_;
};

}  // namespace forerun
