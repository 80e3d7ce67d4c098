// Answering requests with small models made here: what ends an answer, what is kept for
// the next, and that drafts, good or bad, change nothing but the number of passes.
#include "engine/stepper.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/stepper_fixture.h"
#include "plan/own_planner.h"

namespace forerun {
namespace {

// Proposes what a text was before, with mistakes: random trees around it.
class RequestRememberingDrafter final : public RequestDrafter {
 public:
  RequestRememberingDrafter(std::vector<TokenId> answer, uint32_t seed)
      : answer_(std::move(answer)), random_(seed) {}

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    int32_t right = kRoot;  // the end of the path that the text takes
    for (int i = 0; i < limits.max_nodes; ++i) {
      const int32_t parent =
          random_() % 2 == 0
              ? right
              : static_cast<int32_t>(random_() % static_cast<unsigned>(tree.size() + 1)) - 1;
      if (tree.depth(parent) >= limits.max_depth) continue;
      const size_t at = n_read_ + static_cast<size_t>(tree.depth(parent));
      const bool is_right = parent == right && random_() % 4 != 0 && at < answer_.size();
      const TokenId token = is_right ? answer_[at] : TokenId{static_cast<int32_t>(random_() % 256)};
      if (tree.find_child(parent, token)) continue;
      const int32_t node = tree.add({.token = token, .parent = parent});
      if (parent == right && at < answer_.size() && token == answer_[at]) right = node;
    }
  }
  void observe(const DraftTree& tree, const TargetTokens& target) override {
    for (int32_t node = kRoot; node < tree.size(); ++node) targets_.push_back(target.after(node));
  }
  void append(std::span<const TokenId> tokens) override { n_read_ += tokens.size(); }

  std::vector<TokenId> targets_;

 private:
  std::vector<TokenId> answer_;
  std::mt19937 random_;
  size_t n_read_ = 0;
};

class RememberingDrafter final : public Drafter {
 public:
  std::unique_ptr<RequestDrafter> begin(std::span<const TokenId> prompt) override {
    return std::make_unique<RequestRememberingDrafter>(answers[{prompt.begin(), prompt.end()}],
                                                       ++n_begun_);
  }
  std::map<std::vector<TokenId>, std::vector<TokenId>> answers;

 private:
  uint32_t n_begun_ = 0;
};

// Drafts nothing; remembers the state of each prompt as its first draft finds it.
class StateDrafter final : public ModelDrafter {
 public:
  StateDrafter(Executor& executor, PassCosts& costs)
      : ModelDrafter(DraftSource::kLayers, {}, executor, costs, nullptr) {}

  class Watcher final : public RequestModelDrafter {
   public:
    Watcher(StateDrafter& drafter, const RequestView& request)
        : RequestModelDrafter(request, nullptr), drafter_(drafter) {}
    std::optional<DraftPlan> plan() override {
      if (n_drafts_++ == 0) drafter_.states.push_back(*request().prompt_state());
      return std::nullopt;
    }
    std::optional<ChainStart> start() override { return std::nullopt; }

   private:
    StateDrafter& drafter_;
    int n_drafts_ = 0;
  };
  std::unique_ptr<RequestModelDrafter> begin(const RequestView& request) override {
    return std::make_unique<Watcher>(*this, request);
  }
  bool wants_prompt_state() const override { return true; }
  double token_seconds(const DraftPlan&, int, int) const override { return 0; }

  std::vector<PromptState> states;
};

// Verifies all that such a drafter proposes.
std::unique_ptr<Planner> remembering(int size, RememberingDrafter** drafter) {
  auto made = std::make_unique<RememberingDrafter>();
  *drafter = made.get();
  DrafterSet drafters;
  drafters.texts.push_back(std::move(made));
  return std::make_unique<OwnPlanner>(std::move(drafters), size);
}

TEST_F(StepperTest, LimitsAndTimings) {
  for (const int n : {0, 1, 20}) {
    const Generation result = generate("Hello", greedy(n));
    EXPECT_EQ(result.tokens.size(), static_cast<size_t>(n));
    EXPECT_EQ(result.origins.size(), static_cast<size_t>(n));
    EXPECT_EQ(result.stop_reason, StopReason::kLimit);
    EXPECT_EQ(result.timings.n_predicted, n);
    EXPECT_EQ(result.speculation.n_steps, std::max(0, n - 1));
  }
  EXPECT_THROW(generate("Hello", greedy(-2)), Error);
  EXPECT_THROW(stepper_->submit({.prompt = {}}), Error);
  EXPECT_THROW(stepper_->submit({.prompt = {TokenId{100000}}}), Error);
  EXPECT_THROW(stepper_->submit({.prompt = {TokenId{-1}}}), Error);
  EXPECT_FALSE(stepper_->step()) << "nothing is left to do";
}

TEST_F(StepperTest, ContinuesFromWhatItHasSeen) {
  const std::string prompt(100, 'a');
  const Generation first = generate(prompt, greedy(10));
  EXPECT_EQ(first.timings.n_cached, 0);
  const Generation again = generate(prompt, greedy(10));
  EXPECT_EQ(again.tokens, first.tokens);
  EXPECT_EQ(again.timings.n_cached, static_cast<int>(tokens(prompt).size()) - 1);
  const std::string changed = prompt.substr(0, 50) + "b";
  const Generation other = generate(changed, greedy(10));
  EXPECT_EQ(other.timings.n_prompt, static_cast<int>(tokens(changed).size()) - other.timings.n_cached);
  EXPECT_GT(other.timings.n_cached, 0);
  start();
  EXPECT_EQ(generate(changed, greedy(10)).tokens, other.tokens);
}

TEST_F(StepperTest, AShortCommonBeginningLeavesALongTextAlone) {
  const std::string beginning(20, 'b');
  const std::string first = beginning + std::string(150, 'x'),
                    second = beginning + std::string(100, 'y');
  generate(first, greedy(5));
  const Generation other = generate(second, greedy(5));
  EXPECT_GE(other.timings.n_cached, 20) << "it is there for both";
  EXPECT_EQ(generate(first, greedy(5)).timings.n_cached, static_cast<int>(tokens(first).size()) - 1);
  EXPECT_EQ(generate(second, greedy(5)).tokens, other.tokens);
  start();
  EXPECT_EQ(generate(second, greedy(5)).tokens, other.tokens);
}

TEST_F(StepperTest, SharesABeginningWithARequestThatStillRuns) {
  const std::string beginning(60, 'c');
  const RequestId first = submit(beginning + "1", greedy(30));
  for (int i = 0; i < 5; ++i) stepper_->step();
  const Generation second = generate(beginning + "2", greedy(30));
  EXPECT_GE(second.timings.n_cached, 50);
  const Generation one = finish(first);
  start();
  EXPECT_EQ(generate(beginning + "1", greedy(30)).tokens, one.tokens);
  start();
  EXPECT_EQ(generate(beginning + "2", greedy(30)).tokens, second.tokens);
}

TEST_F(StepperTest, FullContextIsAnOrdinaryEnd) {
  const Generation result = generate("Hello", greedy(-1));
  EXPECT_EQ(result.stop_reason, StopReason::kContextFull);
  EXPECT_EQ(result.tokens.size() + tokens("Hello").size(), size_t{kContext} + 1);
  EXPECT_THROW(generate(std::string(2 * kContext, 'x'), greedy(1)), Error);
  EXPECT_EQ(generate("Hello", greedy(3)).tokens.size(), 3u) << "it can be used again";
}

TEST_F(StepperTest, CanBeCancelledAnywhere) {
  // While the prompt is read: three passes of 32 rows, given up before the third.
  int n_asked = 0;
  const Generation early = finish(stepper_->submit({.prompt = tokens(std::string(90, 'q')),
                                                    .options = greedy(5),
                                                    .is_cancelled = [&] { return ++n_asked > 2; }}));
  EXPECT_EQ(early.stop_reason, StopReason::kCancelled);
  EXPECT_TRUE(early.tokens.empty());
  // While the answer is made.
  n_asked = 0;
  const Generation late = finish(stepper_->submit(
      {.prompt = tokens("Hi"), .options = greedy(50), .is_cancelled = [&] { return ++n_asked > 5; }}));
  EXPECT_EQ(late.stop_reason, StopReason::kCancelled);
  EXPECT_FALSE(late.tokens.empty());
  EXPECT_LT(late.tokens.size(), 50u);
  // Before it began.
  const RequestId id = submit("Hi", greedy(5));
  stepper_->cancel(id);
  EXPECT_FALSE(stepper_->step()) << "no pass is needed";
  EXPECT_EQ(finish(id).stop_reason, StopReason::kCancelled);
  EXPECT_EQ(generate("Hi", greedy(4)).tokens.size(), 4u);
}

TEST_F(StepperTest, StreamsTheTextItReturns) {
  std::string streamed;
  const Generation result = finish(stepper_->submit(
      {.prompt = tokens("Hi"), .options = greedy(60), .on_chunk = [&](const Chunk& chunk) {
         streamed += chunk.text;
       }}));
  EXPECT_EQ(streamed, result.text);
}

TEST_F(StepperTest, StopsAtTextsAndTokens) {
  const Generation whole = generate("Hi", greedy(40));
  GenerationOptions options = greedy(40);
  options.stop_tokens = {whole.tokens[5]};
  const Generation stopped = generate("Hi", options);
  EXPECT_EQ(stopped.stop_reason, StopReason::kStop);
  EXPECT_LE(stopped.tokens.size(), 5u);
  options = greedy(40);
  options.stop = {whole.text.substr(whole.text.size() / 2, 3)};
  const Generation cut = generate("Hi", options);
  EXPECT_EQ(cut.stop_reason, StopReason::kStop);
  EXPECT_EQ(cut.text, whole.text.substr(0, whole.text.find(options.stop[0])));
}

TEST_F(StepperTest, OneBadRequestFailsAlone) {
  GenerationOptions impossible = greedy(10);
  for (int32_t id = 0; id < loaded_->model->config().n_vocab; ++id) {
    impossible.sampling.logit_bias.emplace_back(TokenId{id}, -INFINITY);
  }
  const RequestId bad = submit("Hi", impossible);
  const RequestId good = submit("Hello", greedy(10));
  EXPECT_EQ(finish(good).tokens.size(), 10u);
  EXPECT_THROW(finish(bad), Error);
}

TEST_F(StepperTest, SavesAndRestores) {
  const Generation first = generate("A long beginning", greedy(5));
  stepper_->slots().save(folder_.file("cache"));
  start();
  stepper_->slots().restore(folder_.file("cache"));
  const Generation again = generate("A long beginning", greedy(5));
  EXPECT_EQ(again.tokens, first.tokens);
  EXPECT_EQ(again.timings.n_prompt, 1);
}

// Whatever is drafted, alone or among others: the same tokens, text and ends, in fewer
// passes.
TEST_F(StepperTest, DraftsChangeNothingButSpeed) {
  const std::vector<std::string> prompts = {
      "Hello", std::string(70, 'x') + "y", "Once upon", "1 2 3", "z", "?"};
  for (const bool greedily : {true, false}) {
    const auto options = [&](size_t i) {
      // The last one runs until the context is full.
      const int n = i + 1 == prompts.size() ? -1 : 40 + static_cast<int>(i);
      GenerationOptions o = greedily ? greedy(n) : sampled(n, 7 + i);
      o.sampling.n_logprobs = 2;
      return o;
    };
    start();
    std::vector<Generation> plain;
    RememberingDrafter* drafter = nullptr;
    const auto planner = remembering(12, &drafter);
    for (size_t i = 0; i < prompts.size(); ++i) {
      plain.push_back(generate(prompts[i], options(i)));
      drafter->answers[tokens(prompts[i])] = plain.back().tokens;
    }
    start();
    std::vector<RequestId> ids;
    for (size_t i = 0; i < prompts.size(); ++i) {
      ids.push_back(stepper_->submit({.prompt = tokens(prompts[i]), .options = options(i)},
                                     {.planner = planner.get()}));
      stepper_->step();
    }
    for (size_t i = 0; i < prompts.size(); ++i) {
      const Generation drafted = finish(ids[i]);
      EXPECT_EQ(drafted.tokens, plain[i].tokens) << prompts[i];
      EXPECT_EQ(drafted.text, plain[i].text);
      EXPECT_EQ(drafted.stop_reason, plain[i].stop_reason);
      ASSERT_EQ(drafted.logprobs.size(), plain[i].logprobs.size());
      for (size_t t = 0; t < drafted.logprobs.size(); ++t) {
        EXPECT_EQ(drafted.logprobs[t].chosen.logprob, plain[i].logprobs[t].chosen.logprob);
      }
      const SpeculationStatistics& statistics = drafted.speculation;
      EXPECT_GT(statistics.tokens_per_step(), 1.3);
      EXPECT_EQ(statistics.n_tokens, static_cast<int64_t>(drafted.tokens.size()) - 1);
      const DraftCounts counts = statistics.total();
      EXPECT_EQ(counts.n_accepted, std::count_if(drafted.origins.begin(), drafted.origins.end(),
                                                 [](const auto& o) { return o.has_value(); }));
      EXPECT_LE(counts.n_accepted, counts.n_tested);
      EXPECT_LE(counts.n_tested, counts.n_drafted);
    }
  }
}

// The state that comes with the prompt's own passes is the one that a pass for it alone gives,
// and texts are the same bits with it.
TEST_F(StepperTest, PromptsLeaveTheirState) {
  const std::string beginning(70, 'x');  // three passes
  const std::vector<std::string> prompts = {"Hello", beginning + "y", "Once upon a time"};
  GenerationOptions options = greedy(10);
  options.sampling.n_logprobs = 1;
  std::vector<Generation> plain;
  std::vector<PromptState> expected;
  for (const std::string& prompt : prompts) {
    plain.push_back(generate(prompt, options));
    start();
    expected.push_back(read_prompt_state(*executor_, tokens(prompt)).value());
  }
  const auto same = [](std::span<const float> a, std::span<const float> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  PassCosts costs(
      {.curve = CostCurve({{.n_rows = 1, .seconds = 1, .seconds_per_token = 0}}), .blocks = {}});
  start();
  auto drafter = std::make_unique<StateDrafter>(*executor_, costs);
  const std::vector<PromptState>& states = drafter->states;
  DrafterSet drafters;
  drafters.models.push_back(std::move(drafter));
  OwnPlanner planner(std::move(drafters), 4);
  const auto ask = [&](const std::string& prompt) {
    return stepper_->submit({.prompt = tokens(prompt), .options = options}, {.planner = &planner});
  };
  for (size_t i = 0; i < prompts.size(); ++i) {
    const RequestId beside = submit("Somebody else, who pays nothing for it", options);
    const Generation found = finish(ask(prompts[i]));
    finish(beside);
    EXPECT_EQ(found.tokens, plain[i].tokens);
    for (size_t t = 0; t < found.logprobs.size(); ++t) {
      EXPECT_EQ(found.logprobs[t].chosen.logprob, plain[i].logprobs[t].chosen.logprob);
    }
    ASSERT_EQ(states.size(), i + 1);
    EXPECT_EQ(states[i].n_rows(), static_cast<int>(tokens(prompts[i]).size()));
    EXPECT_TRUE(same(states[i].mean(), expected[i].mean())) << prompts[i];
    EXPECT_TRUE(same(states[i].last(), expected[i].last())) << prompts[i];
  }
  // Of what is in the cache already there is no state any more.
  const Generation again = finish(ask(beginning + "z"));
  EXPECT_GT(again.timings.n_cached, 0);
  EXPECT_EQ(states.back().n_rows(), again.timings.n_prompt);
  start();
  const PromptState whole = read_prompt_state(*executor_, tokens(beginning + "z")).value();
  EXPECT_TRUE(same(states.back().last(), whole.last()));
}

// Where bits depend on the shape of a pass, drafts are chains that leave it as it is.
TEST_F(StepperTest, FilledPassesVerifyChains) {
  constexpr int kMinRows = 8;
  const std::string prompt(40, 'm');
  start(kMinRows);
  const Generation plain = generate(prompt, greedy(100));
  RememberingDrafter* drafter = nullptr;
  const auto planner = remembering(12, &drafter);
  drafter->answers[tokens(prompt)] = plain.tokens;
  for (const AcceptRule accept : {AcceptRule::kMatch, AcceptRule::kTargetOnly}) {
    start(kMinRows);
    const Generation drafted =
        finish(stepper_->submit({.prompt = tokens(prompt), .options = greedy(100)},
                                {.planner = planner.get(), .accept = accept}));
    EXPECT_EQ(drafted.tokens, plain.tokens);
    EXPECT_GT(drafted.speculation.tokens_per_step(), 1.2);
    // Of a chain as many are drafted at each depth as it has tokens; a tree has siblings.
    const auto& by_depth = drafted.speculation.by_depth;
    const bool is_chain = accept == AcceptRule::kMatch;
    EXPECT_EQ(by_depth.size() < static_cast<size_t>(kMinRows), is_chain);
    EXPECT_EQ(by_depth[0].n_drafted <= drafted.speculation.n_steps, is_chain);
  }
}

TEST_F(StepperTest, CountsWhileRequestsRun) {
  RememberingDrafter* drafter = nullptr;
  const auto planner = remembering(4, &drafter);
  drafter->answers[tokens("Hello")] = generate("Hello", greedy(20)).tokens;
  start();
  const RequestId id =
      stepper_->submit({.prompt = tokens("Hello"), .options = greedy(20)}, {.planner = planner.get()});
  int64_t n_predicted = 0, n_accepted = 0;
  for (;;) {
    stepper_->step();
    const EngineStatistics now = stepper_->statistics();
    EXPECT_GE(now.speculation.total().n_accepted, n_accepted);
    n_accepted = now.speculation.total().n_accepted;
    if (stepper_->take(id)) break;
    EXPECT_GT(now.n_predicted_tokens, n_predicted) << "each pass gives a token at least";
    n_predicted = now.n_predicted_tokens;
  }
  EXPECT_EQ(stepper_->statistics().n_predicted_tokens, 20);
  EXPECT_GT(n_accepted, 0);
}

}  // namespace
}  // namespace forerun
