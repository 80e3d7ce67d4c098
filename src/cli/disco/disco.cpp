// forerun disco: classifiers that say when to stop drafting.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/disco/work.h"
#include "cli/output.h"
#include "cli/terminal/interrupt.h"
#include "core/error.h"
#include "tune/disco/evaluation.h"
#include "tune/disco/training.h"

namespace forerun {
namespace {

struct EvalOptions {
  DiscoWorkOptions work;
  std::string file;
};

nlohmann::ordered_json score_json(const DiscoScore& score, double threshold) {
  return {{"threshold", threshold},
          {"f1", score.f1},
          {"precision", score.precision},
          {"recall", score.recall}};
}

double share_taken(std::span<const DiscoExample> examples) {
  double sum = 0;
  for (const DiscoExample& example : examples) sum += static_cast<double>(example.taken);
  return sum / static_cast<double>(examples.size());
}

void print_score(const DiscoScore& score, double threshold, const char* whose) {
  fmt::print("threshold {:.2f} ({}): F1 {:.3f}, precision {:.3f}, recall {:.3f}\n", threshold, whose,
             score.f1, score.precision, score.recall);
}

// A line for each tenth of the chance: a bar as long as the share that was taken, and a mark where
// it would end if chances were right.
void print_plot(const DiscoCalibration& calibration) {
  constexpr int kWidth = 40;
  fmt::print("\n{:>11} {:>6} {:>6} {:>8}  taken (bar), said (|)\n", "chance", "said", "taken", "tokens");
  for (size_t i = 0; i < calibration.bins.size(); ++i) {
    const CalibrationBin& bin = calibration.bins[i];
    const double low = static_cast<double>(i) / 10;
    if (bin.n_tokens == 0) {
      fmt::print("{:>4.1f} to {:.1f} {:>6} {:>6} {:>8}\n", low, low + 0.1, "-", "-", 0);
      continue;
    }
    std::string bar(kWidth + 1, ' ');
    const auto column = [&](double share) { return static_cast<size_t>(share * kWidth + 0.5); };
    std::fill_n(bar.begin(), column(bin.taken), '#');
    bar[column(bin.said)] = '|';
    bar.resize(bar.find_last_not_of(' ') + 1);
    fmt::print("{:>4.1f} to {:.1f} {:>6.3f} {:>6.3f} {:>8}  {}\n", low, low + 0.1, bin.said, bin.taken,
               bin.n_tokens, bar);
  }
}

void eval(const EvalOptions& options) {
  DiscoWork work(options.work);
  const auto prompts = prompts_of(work.loaded(), options.work.prompts, options.work.texts.n_texts);
  work.make_caches({.n_context = work.n_context(prompts)});
  const DiscoClassifier classifier = DiscoClassifier::load(options.file, work.models());
  const InterruptGuard guard;
  const std::vector<DiscoExample> examples = work.examples(prompts, "prompts");
  if (examples.empty()) {
    fail(ErrorCode::kInvalidArgument, "the model answers none of the prompts: give others");
  }
  const double threshold = classifier.rule.threshold;
  const DiscoScore own = score_disco(classifier.network, examples, threshold);
  const DiscoScore half = score_disco(classifier.network, examples, 0.5);
  const DiscoCalibration calibration = calibration_of(classifier.network, examples);
  if (options.work.json) {
    nlohmann::ordered_json bins = nlohmann::ordered_json::array();
    for (const CalibrationBin& bin : calibration.bins) {
      bins.push_back({{"tokens", bin.n_tokens}, {"said", bin.said}, {"taken", bin.taken}});
    }
    return print_json({{"file", options.file},
                       {"accept", options.work.accept},
                       {"tokens", examples.size()},
                       {"taken", share_taken(examples)},
                       {"own", score_json(own, threshold)},
                       {"half", score_json(half, 0.5)},
                       {"cross_entropy", cross_entropy(classifier.network, examples)},
                       {"calibration_error", calibration.error},
                       {"brier", calibration.brier},
                       {"bins", bins}});
  }
  fmt::print("{} drafted tokens, of which {:.1f} % are taken\n", examples.size(),
             100 * share_taken(examples));
  print_score(own, threshold, "the classifier's own");
  print_score(half, 0.5, "as likely as not");
  fmt::print("calibration error {:.3f}, Brier score {:.3f}, {:.3f} nats a token\n", calibration.error,
             calibration.brier, cross_entropy(classifier.network, examples));
  print_plot(calibration);
}

}  // namespace

void add_disco_command(CLI::App& app) {
  CLI::App* disco =
      app.add_subcommand("disco", "Train and test classifiers that say when to stop drafting");
  disco->require_subcommand(1);
  add_disco_train_command(*disco);

  auto options = std::make_shared<EvalOptions>();
  CLI::App* command =
      disco->add_subcommand("eval", "Show how well a classifier knows which drafted tokens are taken");
  command->add_option("file", options->file, "A file of 'forerun disco train'")->required();
  add_disco_work_options(*command, options->work);
  command->callback([options] { eval(*options); });
}

}  // namespace forerun
