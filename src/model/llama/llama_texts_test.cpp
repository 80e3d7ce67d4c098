#include "model/llama/llama_texts.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace forerun {
namespace {

// What libllama's memory would hold: lengths alone, since texts are what is tested.
class Lengths final : public SequenceMemory {
 public:
  explicit Lengths(int n_rollback) : n_rollback_(n_rollback) {}
  bool truncate(int sequence, int position) override {
    if (of[sequence] - position > n_rollback_) return false;
    of[sequence] = position;
    return true;
  }
  void clear(int sequence) override { of[sequence] = 0; }
  void copy(int from, int to, int first, int end) override {
    EXPECT_EQ(of[to], first);
    EXPECT_GE(of[from], end);
    of[to] = end;
    ++n_copies;
  }

  std::map<int, int> of;
  int n_copies = 0;

 private:
  int n_rollback_;
};

std::vector<Written> text(int n, uint64_t first_write = 1) {
  std::vector<Written> tokens;
  for (int i = 0; i < n; ++i) {
    tokens.push_back({.cell = i, .write = first_write + static_cast<uint64_t>(i)});
  }
  return tokens;
}

class LlamaTextsTest : public ::testing::Test {
 protected:
  // Takes, computes what is missing, releases.
  LlamaTexts::Place read(LlamaTexts& texts, Lengths& memory, const std::vector<Written>& tokens,
                         SequenceId owner) {
    const auto place = texts.take(tokens, owner).value();
    EXPECT_EQ(memory.of[place.sequence], place.n_there);
    texts.append(place.sequence, std::span(tokens).subspan(static_cast<size_t>(place.n_there)));
    memory.of[place.sequence] = static_cast<int>(tokens.size());
    texts.release_all();
    return place;
  }
  static constexpr int kAll = 1000;
};

TEST_F(LlamaTextsTest, ATextGoesOnInItsSequence) {
  Lengths memory(kAll);
  LlamaTexts texts(memory, 4, true);
  const auto first = read(texts, memory, text(5), SequenceId{7});
  EXPECT_EQ(first.n_there, 0);
  const auto second = read(texts, memory, text(9), SequenceId{7});
  EXPECT_EQ(second.sequence, first.sequence);
  EXPECT_EQ(second.n_there, 5);
}

TEST_F(LlamaTextsTest, WhatWasDraftedInVainIsForgotten) {
  Lengths memory(kAll);
  LlamaTexts texts(memory, 4, true);
  read(texts, memory, text(9), SequenceId{7});
  std::vector<Written> other = text(6);
  other.push_back({.cell = 6, .write = 100});  // the cell was written again
  EXPECT_EQ(read(texts, memory, other, SequenceId{7}).n_there, 6);
}

TEST_F(LlamaTextsTest, ABeginningIsSharedWithWhomeverHasIt) {
  Lengths memory(kAll);
  LlamaTexts texts(memory, 4, true);
  const auto first = read(texts, memory, text(9), SequenceId{1});
  std::vector<Written> fork = text(4);
  fork.push_back({.cell = 20, .write = 50});
  const auto second = read(texts, memory, fork, SequenceId{2});
  EXPECT_NE(second.sequence, first.sequence);
  EXPECT_EQ(second.n_there, 4);
  EXPECT_EQ(memory.n_copies, 1);
}

TEST_F(LlamaTextsTest, BranchesOfADraftHaveSequencesOfTheirOwn) {
  Lengths memory(kAll);
  LlamaTexts texts(memory, 3, true);
  read(texts, memory, text(5), SequenceId{1});
  const auto a = texts.take(text(6), SequenceId{1}).value();
  std::vector<Written> other = text(5);
  other.push_back({.cell = 9, .write = 70});
  const auto b = texts.take(other, std::nullopt).value();
  EXPECT_NE(a.sequence, b.sequence);
  EXPECT_EQ(a.n_there, 5);
  EXPECT_EQ(b.n_there, 5);
  EXPECT_TRUE(texts.take(text(2), std::nullopt).has_value());
  EXPECT_FALSE(texts.take(text(1), std::nullopt).has_value()) << "all are taken";
  texts.release_all();
  // The branch that became the text is copied from where it was computed.
  memory.of[b.sequence] = 6;
  LlamaTexts::Place again = texts.take(other, SequenceId{1}).value();
  EXPECT_EQ(again.sequence, a.sequence);
}

TEST_F(LlamaTextsTest, AStateThatCannotBeRolledBackIsComputedAgain) {
  Lengths memory(2);
  LlamaTexts texts(memory, 4, false);
  read(texts, memory, text(9), SequenceId{1});
  EXPECT_EQ(read(texts, memory, text(8), SequenceId{1}).n_there, 8);
  EXPECT_EQ(read(texts, memory, text(3), SequenceId{1}).n_there, 0);
}

TEST_F(LlamaTextsTest, AStateIsCopiedAsAWhole) {
  Lengths memory(0);
  LlamaTexts texts(memory, 4, false);
  read(texts, memory, text(5), SequenceId{1});
  EXPECT_EQ(read(texts, memory, text(8), SequenceId{2}).n_there, 5);
  EXPECT_EQ(read(texts, memory, text(6), SequenceId{3}).n_there, 5) << "not from the longer one";
}

TEST_F(LlamaTextsTest, TheOneUsedTheLongestAgoGivesWay) {
  Lengths memory(kAll);
  LlamaTexts texts(memory, 2, true);
  const auto first = read(texts, memory, text(5), SequenceId{1});
  read(texts, memory, text(5, 100), SequenceId{2});
  EXPECT_EQ(read(texts, memory, text(5, 200), SequenceId{3}).sequence, first.sequence);
  texts.clear_if([](auto owner) { return owner == SequenceId{2}; });
  EXPECT_EQ(read(texts, memory, text(5, 100), SequenceId{2}).n_there, 0);
}

}  // namespace
}  // namespace forerun
