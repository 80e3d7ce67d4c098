#include "draft/mixed.h"

#include "draft/draft_test_support.h"
#include "draft/pld.h"
#include "draft/suffix.h"

namespace forerun {
namespace {

MixedMethod mix_of_two() {
  DraftMethods methods;
  methods.push_back(std::make_unique<PldMethod>(PldOptions{}));
  methods.push_back(std::make_unique<SuffixMethod>(SuffixOptions{}));
  return MixedMethod(std::move(methods));
}

TEST(Mixed, LaysTreesOverEachOther) {
  std::mt19937 random(5);
  MixedMethod mixed = mix_of_two();
  PldMethod pld{PldOptions{}};
  SuffixMethod suffix{SuffixOptions{}};
  int n_agreed = 0;
  for (int round = 0; round < 50; ++round) {
    const Tokens text = random_tokens(random, 80, 6);
    const auto prompt = std::span(text).first(20);
    const auto drafter = mixed.begin(prompt);
    const auto first = pld.begin(prompt);
    const auto second = suffix.begin(prompt);
    for (size_t i = 20; i < text.size(); i += 4) {
      const auto more = std::span(text).subspan(i, 4);
      for (Drafter* d : {drafter.get(), first.get(), second.get()}) d->append(more);
      const DraftTree tree = draft(*drafter, {.max_nodes = 15, .max_depth = 6});
      const auto a = paths(draft(*first, {.max_nodes = 8, .max_depth = 6}));
      const auto b = paths(draft(*second, {.max_nodes = 7, .max_depth = 6}));
      EXPECT_LE(tree.size(), 15);
      std::map<Tokens, float> expected = a;
      for (const auto& [path, score] : b) expected[path] = std::max(expected[path], score);
      ASSERT_EQ(static_cast<size_t>(tree.size()), expected.size());
      for (int32_t node = 0; node < tree.size(); ++node) {
        const Tokens path = path_to(tree, node);
        EXPECT_EQ(tree[node].score, expected.at(path));
        EXPECT_EQ(tree[node].proposers, (a.contains(path) ? 1 : 0) + (b.contains(path) ? 2 : 0));
        n_agreed += tree[node].proposers == 3 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(n_agreed, 100) << "or nothing was tested";
}

}  // namespace
}  // namespace forerun
