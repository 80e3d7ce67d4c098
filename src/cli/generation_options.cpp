#include "cli/generation_options.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/error.h"
#include "sampling/options.h"

namespace forerun {
namespace {

// "1234=-2.5", "1234=-inf", as --logit-bias takes it.
std::pair<TokenId, float> parse_bias(const std::string& text) {
  int32_t token = 0;
  const size_t equals = text.find('=');
  const char* begin = text.data();
  const bool has_token = equals != std::string::npos &&
                         std::from_chars(begin, begin + equals, token).ptr == begin + equals &&
                         equals > 0;
  char* end = nullptr;
  const float bias = has_token ? std::strtof(begin + equals + 1, &end) : 0.0f;
  if (!has_token || end == begin + equals + 1 || *end != '\0' || std::isnan(bias)) {
    fail(ErrorCode::kInvalidArgument,
         "--logit-bias takes TOKEN=BIAS, such as 1234=-2.5 or 1234=-inf, not '{}'", text);
  }
  return {TokenId{token}, bias};
}

}  // namespace

void add_generation_options(CLI::App& command, GenerationFlags& flags) {
  const char* group = "Answer";
  GenerationOptions& options = flags.options;
  command
      .add_option("-n,--predict,--max-tokens", options.max_tokens,
                  "Tokens to generate at most (-1: no limit)")
      ->capture_default_str()
      ->group(group);
  command.add_option("--stop", options.stop, "Text that ends the answer; may be given again")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
  command
      .add_option("--stop-token", flags.stop_tokens, "Token id that ends the answer; may be given again")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
  command.add_flag("--ignore-eos", options.ignore_eos, "Never let the model end the answer")
      ->group(group);
  command
      .add_option("--logprobs", flags.n_logprobs,
                  "Report log-probabilities of the token and the N best (--json)")
      ->check(CLI::Range(0, 1000))
      ->group(group);

  group = "Sampling";
  SamplingOptions& sampling = options.sampling;
  command.add_option("--temp", sampling.temperature, "Temperature; 0: always the most probable token")
      ->capture_default_str()
      ->group(group);
  command.add_option("--top-k", sampling.top_k, "Keep the k most probable tokens (0: all)")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--top-p", sampling.top_p, "Keep the most probable tokens up to this total (1: all)")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--min-p", sampling.min_p,
                  "Drop tokens below this share of the best one's probability")
      ->capture_default_str()
      ->group(group);
  command.add_option("-s,--seed", flags.seed, "Same seed, same text (default: a random one)")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()))
      ->group(group);
  command
      .add_option("--repeat-penalty", sampling.repeat_penalty, "Make recent tokens less likely (1: off)")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--repeat-last-n", sampling.repeat_last_n,
                  "What counts as recent (-1: the whole context)")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--presence-penalty", sampling.presence_penalty, "Subtracted once for a recent token")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--frequency-penalty", sampling.frequency_penalty, "Subtracted per recent occurrence")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--logit-bias", flags.logit_bias,
                  "TOKEN=BIAS added to a logit; -inf forbids; may be given again")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
}

GenerationOptions generation_options(const GenerationFlags& flags) {
  GenerationOptions options = flags.options;
  for (const std::string& bias : flags.logit_bias)
    options.sampling.logit_bias.push_back(parse_bias(bias));
  for (const int token : flags.stop_tokens) options.stop_tokens.push_back(TokenId{token});
  if (flags.n_logprobs >= 0) options.sampling.n_logprobs = flags.n_logprobs;
  if (flags.seed >= 0) options.sampling.seed = static_cast<uint64_t>(flags.seed);
  validate(options);
  return options;
}

}  // namespace forerun
