#include "draft/rivals.h"

#include <gtest/gtest.h>

#include "draft/scripted_method.h"

namespace forerun {
namespace {

using test::Script;
using test::ScriptedMethod;
using test::ShortText;

class RivalsTest : public ::testing::Test {
 protected:
  DraftTree draft(double rival_rate = 0, int max_nodes = 20) {
    DraftMethods methods;
    methods.push_back(std::make_unique<ScriptedMethod>(first_));
    methods.push_back(std::make_unique<ScriptedMethod>(second_));
    RivalsMethod method(std::move(methods));
    const auto drafter = method.begin(request_.text());
    drafter->attach(request_);
    DraftTree tree;
    const DraftJob job{.drafter = drafter.get(),
                       .limits = {.max_nodes = max_nodes, .max_depth = 10},
                       .tree = &tree,
                       .rival_rate = rival_rate};
    method.draft({&job, 1});
    return tree;
  }

  Script first_{.chains = {{5, 6, 7}}, .source = DraftSource::kModel};
  Script second_{.chains = {{5, 8}}, .source = DraftSource::kModel};
  ShortText request_;
};

TEST_F(RivalsTest, TheOthersAreToldWhatTheBestBrings) {
  first_.rate = 30;
  second_.rate = 40;
  draft(35);
  EXPECT_EQ(first_.jobs.back().rival_rate, 40);
  EXPECT_EQ(second_.jobs.back().rival_rate, 35) << "what there is anyway is more than the other's";
  draft(0);
  EXPECT_EQ(first_.jobs.back().rival_rate, 40);
  EXPECT_EQ(second_.jobs.back().rival_rate, 0) << "or both stand back, where they are about alike";
}

TEST_F(RivalsTest, WhatSeveralDraftIsLaidOverEachOther) {
  const DraftTree tree = draft();
  EXPECT_EQ(tree.size(), 4);
  const int32_t shared = tree.find_child(kRoot, TokenId{5}).value();
  EXPECT_TRUE(tree.find_child(shared, TokenId{6}));
  EXPECT_TRUE(tree.find_child(shared, TokenId{8}));
  EXPECT_EQ(draft(0, 3).size(), 3) << "as far as there is room";
}

TEST_F(RivalsTest, OneAloneIsTakenAsItIs) {
  first_.chains.clear();
  EXPECT_EQ(draft().size(), 2);
  second_.draws = true;
  EXPECT_TRUE(draft().has_distributions());
}

}  // namespace
}  // namespace forerun
