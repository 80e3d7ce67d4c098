// Random texts and plain, slow answers to compare a segment's with.
#pragma once

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "retrieval/segment.h"

namespace forerun {

struct RandomText {
  int n_documents = 5;
  int max_length = 40;  // of a document
  int n_vocab = 4;
  // Ids are alphabet indices times this, so that large ids occur.
  int stride = 1;
};

inline std::vector<TokenId> random_text(const RandomText& spec, std::mt19937& random) {
  std::vector<TokenId> text;
  const int n_letters = (spec.n_vocab - 1) / spec.stride + 1;
  for (int document = 0; document < spec.n_documents; ++document) {
    const int length = std::uniform_int_distribution<int>(0, spec.max_length)(random);
    for (int i = 0; i < length; ++i) {
      text.push_back(
          TokenId{std::uniform_int_distribution<int>(0, n_letters - 1)(random) * spec.stride});
    }
    text.push_back(Segment::kSeparator);
  }
  return text;
}

// What stands at a place, as far as the order compares it.
inline std::vector<TokenId> text_at(std::span<const TokenId> text, int64_t place, int depth) {
  std::vector<TokenId> result;
  for (; place < static_cast<int64_t>(text.size()) && static_cast<int>(result.size()) < depth; ++place) {
    if (text[static_cast<size_t>(place)] == Segment::kSeparator) break;
    result.push_back(text[static_cast<size_t>(place)]);
  }
  return result;
}

// All places of tokens, in order.
inline std::vector<int64_t> ordered_places(std::span<const TokenId> text) {
  std::vector<int64_t> places;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != Segment::kSeparator) places.push_back(static_cast<int64_t>(i));
  }
  std::sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
    const auto text_a = text_at(text, a, Segment::kOrderDepth);
    const auto text_b = text_at(text, b, Segment::kOrderDepth);
    return text_a != text_b ? text_a < text_b : a > b;
  });
  return places;
}

// The places where `query` occurs, in order; `places` are all, in order.
inline std::vector<int64_t> occurrences(std::span<const TokenId> text, std::vector<int64_t> places,
                                        std::span<const TokenId> query) {
  std::erase_if(places, [&](int64_t place) {
    return !std::ranges::equal(text_at(text, place, static_cast<int>(query.size())), query);
  });
  return places;
}

inline std::vector<int64_t> places_of(const Segment& segment, Segment::Range range) {
  std::vector<int64_t> places;
  for (int64_t rank = range.begin; rank < range.end; ++rank) places.push_back(segment.place(rank));
  return places;
}

}  // namespace forerun
