// forerun disco train: from prompts to a classifier that says when to stop drafting.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/disco/work.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/output_file.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "core/error.h"
#include "core/fingerprint.h"
#include "core/stopwatch.h"
#include "cost/known_costs.h"
#include "draft/methods.h"
#include "plan/own_planner.h"
#include "stopping/disco.h"
#include "tune/answer_timer.h"
#include "tune/disco/evaluation.h"
#include "tune/disco/training.h"
#include "tune/disco/tuning.h"

namespace forerun {
namespace {

struct TrainOptions {
  DiscoWorkOptions work;
  std::vector<std::string> validation;
  DiscoTrainingOptions training;
  std::optional<double> threshold;
  std::optional<int> max_tokens;
  std::string output;
};

// Without prompts of their own, every fifth validates.
constexpr size_t kHeldOut = 5;
// Validation prompts whose answers are timed.
constexpr size_t kTimed = 24;

struct Prompts {
  std::vector<std::vector<TokenId>> training;
  std::vector<std::vector<TokenId>> validation;
};

Prompts read_all(const TrainOptions& options, const LoadedModel& loaded) {
  Prompts prompts;
  const auto all = prompts_of(loaded, options.work.prompts, options.work.texts.n_texts);
  if (!options.validation.empty()) {
    prompts.training = all;
    prompts.validation = prompts_of(loaded, options.validation, options.work.texts.n_texts);
    return prompts;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    (i % kHeldOut == kHeldOut - 1 ? prompts.validation : prompts.training).push_back(all[i]);
  }
  if (prompts.validation.empty()) {
    fail(ErrorCode::kInvalidArgument,
         "{} prompts leave none to validate with: give {} or more, or others (--validation FILE)",
         all.size(), kHeldOut);
  }
  return prompts;
}

// The rule that drafts fastest, and how much faster than plain decoding that is.
struct Tuned {
  DiscoRule rule;
  double speedup = 0;
  int n_timed = 0;  // texts
};

// What drafts as it will be used, but that its rule can be changed.
class TunedMethod {
 public:
  TunedMethod(DiscoWork& work, const DiscoClassifier& classifier, AcceptRule accept)
      : accept_(accept), costs_(known_costs(work.executor())) {
    auto policy = std::make_unique<DiscoStopping>(classifier);
    policy_ = policy.get();
    const MethodOptions usual;
    DrafterSet drafters;
    if (work.draft() != nullptr) {
      drafters.models.push_back(
          std::make_unique<DraftModelDrafter>(usual.draft.draft, work.draft(), std::move(policy)));
    } else {
      drafters.models.push_back(std::make_unique<LayerSkippingDrafter>(
          usual.selfsd.draft, work.executor(), costs_, std::make_unique<FixedLayers>(work.layers()),
          std::move(policy)));
    }
    planner_ = std::make_unique<OwnPlanner>(std::move(drafters), kLargestTree);
  }

  Speculation with(const DiscoRule& rule) {
    policy_->set_rule(rule);
    return {.planner = planner_.get(), .accept = accept_};
  }

 private:
  AcceptRule accept_;
  DiscoStopping* policy_;
  PassCosts costs_;
  std::unique_ptr<Planner> planner_;
};

// At the first of the temperatures.
Tuned tune(const TrainOptions& options, DiscoWork& work, const DiscoClassifier& classifier,
           const std::vector<std::vector<TokenId>>& prompts) {
  const double temperature = options.work.temperatures.front();
  TunedMethod method(work, classifier, parse_accept_rule(options.work.accept).value());
  AnswerTimer timer(work.executor(), work.loaded().vocabulary,
                    work.answers(prompts, temperature, "answering what is timed"),
                    work.sampling(temperature));
  for (size_t text = 0; text < timer.n_texts(); ++text) timer.answer(text, method.with({}));
  WorkProgress progress("timing rules");
  TuningOptions tuning;
  if (options.threshold) tuning.thresholds = {*options.threshold};
  if (options.max_tokens) tuning.lengths = {*options.max_tokens};
  tuning.progress = [&](double share) { progress.show(share); };
  tuning.is_cancelled = [] {
    check_interrupt();
    return false;
  };
  Tuned tuned{.rule = {}, .n_timed = static_cast<int>(timer.n_texts())};
  tuned.rule = tune_disco(
      timer.n_texts(),
      [&](const DiscoRule& rule, size_t text) { return timer.answer(text, method.with(rule)); }, tuning);
  double plain = 0, drafted = 0;
  for (size_t text = 0; text < timer.n_texts(); ++text) {
    plain += timer.answer(text, {});
    drafted += timer.answer(text, method.with(tuned.rule));
  }
  tuned.speedup = plain / std::max(drafted, 1e-9);
  return tuned;
}

void print(const TrainOptions& options, const DiscoClassifier& classifier, const DiscoScore& score,
           const std::optional<Tuned>& tuned, size_t n_held_out, double seconds) {
  if (options.work.json) {
    nlohmann::ordered_json json{{"file", options.output},
                                {"model", fingerprint_text(classifier.models.target)},
                                {"draft", fingerprint_text(classifier.models.draft)},
                                {"accept", options.work.accept},
                                {"examples", classifier.n_examples},
                                {"held_out", n_held_out},
                                {"f1", score.f1},
                                {"precision", score.precision},
                                {"recall", score.recall},
                                {"threshold", classifier.rule.threshold},
                                {"max_tokens", classifier.rule.max_tokens},
                                {"seconds", seconds}};
    if (tuned) json["speedup"] = tuned->speedup;
    return print_json(json);
  }
  fmt::print(
      "{}: learnt from {} drafted tokens, tested on {}: F1 {:.3f}, precision {:.3f}, recall {:.3f}\n",
      options.output, classifier.n_examples, n_held_out, score.f1, score.precision, score.recall);
  fmt::print("drafts end behind a token whose chance is below {:.2f}, or {} tokens",
             classifier.rule.threshold, classifier.rule.max_tokens);
  if (tuned) {
    fmt::print(": {:.2f}x plain decoding on {} validation prompts", tuned->speedup, tuned->n_timed);
  }
  fmt::print(" ({:.0f} s)\n", seconds);
}

void train(const TrainOptions& options) {
  std::vector<std::string> inputs = options.work.prompts;
  inputs.insert(inputs.end(), options.validation.begin(), options.validation.end());
  inputs.insert(inputs.end(), {options.work.model.model, options.work.draft_model, options.work.layers});
  check_output(options.output, inputs);
  const Stopwatch watch;
  DiscoWork work(options.work);
  const Prompts prompts = read_all(options, work.loaded());
  const bool tunes = !options.threshold || !options.max_tokens;
  auto timed = prompts.validation;
  timed.resize(std::min(timed.size(), kTimed));
  const int n_context =
      std::max(work.n_context(prompts.training), work.n_context(prompts.validation)) + kLargestTree;
  work.make_caches({.n_context = n_context,
                    .n_cells = tunes ? static_cast<int>(timed.size()) * n_context : 0,
                    .n_slots = tunes ? static_cast<int>(timed.size()) : 1});

  const InterruptGuard guard;
  const std::vector<DiscoExample> examples = work.examples(prompts.training, "prompts");
  const std::vector<DiscoExample> held_out = work.examples(prompts.validation, "validation prompts");
  DiscoTrainingOptions training = options.training;
  training.seed = options.work.seed;
  DiscoClassifier classifier{.models = work.models(),
                             .rule = {},
                             .n_examples = static_cast<int64_t>(examples.size()),
                             .network = {}};
  {
    WorkProgress progress("training");
    training.progress = [&](double share, double loss) {
      progress.show(share, fmt::format(", {:.4f} nats", loss));
    };
    classifier.network = train_disco(examples, held_out, training);
  }
  std::optional<Tuned> tuned;
  if (tunes) {
    tuned = tune(options, work, classifier, timed);
    classifier.rule = tuned->rule;
  } else {
    classifier.rule = {.threshold = *options.threshold, .max_tokens = *options.max_tokens};
  }
  classifier.save(options.output);
  print(options, classifier, score_disco(classifier.network, held_out, 0.5), tuned, held_out.size(),
        watch.seconds());
}

}  // namespace

void add_disco_train_command(CLI::App& disco) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = disco.add_subcommand(
      "train", "Train a classifier that says when to stop drafting, for --lookahead disco");
  command->add_option("-o,--output", options->output, "The file to write")->required();
  command
      ->add_option("--validation", options->validation,
                   "Prompts to validate with, may be given again (default: every fifth of --prompts)")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--hidden", options->training.n_hidden, "Units of the network's hidden layer")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--epochs", options->training.n_epochs, "Times that it sees every example")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command
      ->add_option("--threshold", options->threshold,
                   "End drafts behind a token whose chance is below this (default: the fastest)")
      ->check(number_range(0.0, 1.0));
  command
      ->add_option("--max-tokens", options->max_tokens,
                   "Tokens of a draft at most (default: the fastest)")
      ->check(CLI::Range(1, 127));
  add_disco_work_options(*command, options->work);
  command->callback([options] { train(*options); });
}

}  // namespace forerun
