// What fails: a caller's function that throws ends its own request and nothing else, one whose
// drafts fail goes on without, and a pass that fails can be tried again.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/discard_guard.h"
#include "engine/stepper_fixture.h"
#include "plan/own_planner.h"
#include "support/failing_device.h"

namespace forerun {
namespace {

// Nothing that forerun knows.
struct Oddity {
  int number;
};
constexpr int kNumber = 7;

[[noreturn]] void throw_oddity() {
  throw Oddity{kNumber};
}

// Where a drafter throws.
enum class Fault { kNever, kBegin, kDraft, kObserve, kAppend, kFinish };

// Drafts a token that is wrong as a rule.
class FaultyDrafter final : public Drafter {
 public:
  std::unique_ptr<RequestDrafter> begin(std::span<const TokenId> /*prompt*/) override {
    fail_at(Fault::kBegin);
    return std::make_unique<OfRequest>(*this);
  }
  void fail_at(Fault place) const {
    if (place == fault) throw_oddity();
  }

  Fault fault = Fault::kNever;
  int n_requests = 0;  // that it drafts for

 private:
  class OfRequest final : public RequestDrafter {
   public:
    explicit OfRequest(FaultyDrafter& drafter) : drafter_(drafter) { ++drafter_.n_requests; }
    ~OfRequest() override { --drafter_.n_requests; }
    void draft(const DraftLimits& /*limits*/, DraftTree& tree) override {
      tree.add({.token = TokenId{1}, .parent = kRoot});
      drafter_.fail_at(Fault::kDraft);
    }
    void observe(const DraftTree& /*tree*/, const TargetTokens& /*target*/) override {
      drafter_.fail_at(Fault::kObserve);
    }
    void append(std::span<const TokenId> /*tokens*/) override { drafter_.fail_at(Fault::kAppend); }
    void finish() override { drafter_.fail_at(Fault::kFinish); }

   private:
    FaultyDrafter& drafter_;
  };
};

class StepperFailuresTest : public StepperTest {
 protected:
  void TearDown() override { test::fail_at_pass(0); }

  Request asking(const std::string& prompt) { return {.prompt = tokens(prompt), .options = greedy(20)}; }

  // Among others, the request ends with the oddity that it throws. The others have their texts,
  // and nothing of it is left behind.
  void expect_it_fails_alone(const Request& bad, const Speculation& speculation) {
    start();
    const std::vector<TokenId> expected = generate("Hello", greedy(20)).tokens;
    start();
    const int n_free = executor_->cells().n_free();
    const RequestId before = stepper_->submit(asking("Hello"));
    const RequestId failing = stepper_->submit(bad, speculation);
    const RequestId after = stepper_->submit(asking("Hello"));
    EXPECT_EQ(finish(before).tokens, expected);
    EXPECT_EQ(finish(after).tokens, expected);
    try {
      finish(failing);
      ADD_FAILURE() << "it did not fail";
    } catch (const Oddity& oddity) {
      EXPECT_EQ(oddity.number, kNumber);
    }
    EXPECT_FALSE(stepper_->step()) << "nothing is left to do";
    EXPECT_EQ(drafter_->n_requests, 0);
    stepper_->slots().clear();  // which are all free
    EXPECT_EQ(executor_->cells().n_free(), n_free);
  }

  StepperFailuresTest() {
    DrafterSet drafters;
    auto made = std::make_unique<FaultyDrafter>();
    drafter_ = made.get();
    drafters.texts.push_back(std::move(made));
    planner_ = std::make_unique<OwnPlanner>(std::move(drafters), 4);
  }
  Speculation drafting() { return {.planner = planner_.get()}; }

  FaultyDrafter* drafter_;
  std::unique_ptr<Planner> planner_;
};

TEST_F(StepperFailuresTest, AFunctionThatThrowsEndsItsRequestAlone) {
  const std::string whole = generate("Hi", greedy(20)).text;
  Request request = asking("Hi");

  request.on_chunk = [](const Chunk&) { throw_oddity(); };
  expect_it_fails_alone(request, {});
  expect_it_fails_alone(request, drafting());

  // The end of the text is held back until the answer is over: it may be a stop string's beginning.
  size_t n_shown = 0;
  request.on_chunk = [&](const Chunk& chunk) {
    n_shown += chunk.text.size();
    if (n_shown == whole.size()) throw_oddity();
  };
  request.options.stop = {whole.substr(whole.size() - 1) + "and never this"};
  expect_it_fails_alone(request, drafting());
  EXPECT_EQ(n_shown, whole.size());

  for (const int n_passes : {0, 1, 5}) {
    int n_asked = 0;
    request = asking("Hi");
    request.is_cancelled = [&] {
      if (n_asked++ == n_passes) throw_oddity();
      return false;
    };
    expect_it_fails_alone(request, drafting());
  }
}

TEST_F(StepperFailuresTest, WhoeverLearnsFromAnAnswerMayThrow) {
  const Speculation keeping{.on_answer = [](auto, auto) { throw_oddity(); }};
  expect_it_fails_alone(asking("Hi"), keeping);
  EXPECT_EQ(stepper_->statistics().speculation.n_steps, 3 * 19);
}

TEST_F(StepperFailuresTest, ARequestGoesOnWithoutADrafterThatFails) {
  const std::vector<TokenId> expected = generate("Hello", greedy(20)).tokens;
  for (const Fault fault :
       {Fault::kBegin, Fault::kDraft, Fault::kObserve, Fault::kAppend, Fault::kFinish}) {
    start();
    drafter_->fault = fault;
    const RequestId one = stepper_->submit(asking("Hello"), drafting());
    const RequestId other = stepper_->submit(asking("Hello"));
    EXPECT_EQ(finish(one).tokens, expected);
    EXPECT_EQ(finish(other).tokens, expected);
    EXPECT_EQ(drafter_->n_requests, 0);
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("drafts"), std::string::npos);
  }
}

// Whichever pass fails, of a prompt, with drafts or without.
TEST_F(StepperFailuresTest, APassThatFailsIsTriedAgain) {
  const std::string prompt(70, 'x');  // three passes
  const std::vector<TokenId> expected = generate("Hello", greedy(20)).tokens;
  const std::vector<TokenId> drafted = generate(prompt, greedy(20)).tokens;
  for (int pass = 1; pass <= 20; ++pass) {
    start();
    const RequestId one = stepper_->submit(asking("Hello"));
    const RequestId other = stepper_->submit(asking(prompt), drafting());
    test::fail_at_pass(pass);
    for (int i = 1; i < pass; ++i) stepper_->step();
    // So often that the cells would not suffice if failed passes kept theirs.
    for (int i = 0; i < kSlots * kContext; ++i) ASSERT_THROW(stepper_->step(), Error);
    test::fail_at_pass(0);
    EXPECT_EQ(finish(one).tokens, expected) << "after pass " << pass;
    EXPECT_EQ(finish(other).tokens, drafted) << "after pass " << pass;
    EXPECT_EQ(drafter_->n_requests, 0);
  }
}

TEST_F(StepperFailuresTest, DraftsThatFailOnceAreTriedAgain) {
  const std::vector<TokenId> expected = generate("Hello", greedy(20)).tokens;
  start();
  const RequestId one = stepper_->submit(asking("Hello"));
  const RequestId other = stepper_->submit(asking("Hello"), drafting());
  for (int round = 0; round < 5; ++round) {
    drafter_->fault = Fault::kNever;
    stepper_->step();
    drafter_->fault = Fault::kDraft;
    stepper_->step();
  }
  drafter_->fault = Fault::kNever;
  EXPECT_EQ(finish(one).tokens, expected);
  const Generation drafted = finish(other);
  EXPECT_EQ(drafted.tokens, expected);
  EXPECT_GT(drafted.speculation.total().n_drafted, 10);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(StepperFailuresTest, NothingIsLeftOfWhatIsDiscarded) {
  const std::vector<TokenId> expected = generate("Hello", greedy(20)).tokens;
  for (const int n_passes : {0, 1, 5, 40}) {  // it waits, reads, answers, is over
    start();
    const int n_free = executor_->cells().n_free();
    const RequestId other = stepper_->submit(asking("Hello"));
    std::optional<RequestId> id;
    {
      id = stepper_->submit(asking(std::string(40, 'x')), drafting());
      const DiscardGuard guard(*stepper_, *id);
      for (int i = 0; i < n_passes; ++i) stepper_->step();
    }
    EXPECT_FALSE(stepper_->take(*id).has_value());
    EXPECT_EQ(drafter_->n_requests, 0);
    EXPECT_EQ(finish(other).tokens, expected);
    EXPECT_FALSE(stepper_->step()) << "nothing is left to do";
    stepper_->slots().clear();  // which are all free
    EXPECT_EQ(executor_->cells().n_free(), n_free);
  }
}

TEST_F(StepperFailuresTest, FunctionsMaySubmitAndCancelOthers) {
  const std::vector<TokenId> expected = generate("Hello", greedy(20)).tokens;
  start();
  const RequestId long_one = submit("Once upon", greedy(-1));
  std::vector<RequestId> more;
  Request request = asking("Hi");
  request.on_chunk = [&](const Chunk&) {
    stepper_->cancel(long_one);
    more.push_back(stepper_->submit(asking("Hello")));
  };
  request.is_cancelled = [&] {
    more.push_back(stepper_->submit(asking("Hello")));
    return false;
  };
  finish(stepper_->submit(request));
  EXPECT_EQ(finish(long_one).stop_reason, StopReason::kCancelled);
  EXPECT_GT(more.size(), 20u);
  for (const RequestId id : more) EXPECT_EQ(finish(id).tokens, expected);
}

}  // namespace
}  // namespace forerun
