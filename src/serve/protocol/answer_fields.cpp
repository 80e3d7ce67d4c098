#include "serve/protocol/answer_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "chat/chat_format.h"
#include "core/error.h"
#include "core/ids.h"
#include "sampling/options.h"
#include "serve/protocol/response_format.h"

namespace forerun {
namespace {

// Samplers of others, and the value at which they do nothing.
struct Neutral {
  const char* name;
  double value;
};
constexpr std::array kNeutral = {
    Neutral{"typical_p", 1.0},       Neutral{"dynatemp_range", 0.0}, Neutral{"mirostat", 0.0},
    Neutral{"xtc_probability", 0.0}, Neutral{"dry_multiplier", 0.0}, Neutral{"top_n_sigma", -1.0},
};
constexpr int kMaxChoices = 64;
constexpr int kMaxLogprobs = 1000;
constexpr size_t kMaxStops = 64;

void refuse_other_samplers(const Json& request) {
  for (const Neutral& neutral : kNeutral) {
    const auto value = number_field(request, neutral.name);
    if (!value || *value == neutral.value || *value == 0.0) continue;
    fail(ErrorCode::kUnsupported, "forerun has no \"{}\": leave it out, or set it to {}", neutral.name,
         neutral.value);
  }
}

std::vector<std::string> read_stops(const Json& request, const std::string& name) {
  const Json* field = find_field(request, name);
  if (field == nullptr) return {};
  if (field->is_string()) return {field->get<std::string>()};
  std::vector<std::string> stops;
  if (!field->is_array() || field->size() > kMaxStops) {
    fail(ErrorCode::kInvalidArgument, "\"{}\" must be a string or an array of at most {} strings", name,
         kMaxStops);
  }
  for (const Json& stop : *field) {
    if (!stop.is_string()) fail(ErrorCode::kInvalidArgument, "\"{}\" must hold strings", name);
    if (!stop.get<std::string>().empty()) stops.push_back(stop);
  }
  return stops;
}

class BiasReader {
 public:
  explicit BiasReader(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  std::vector<std::pair<TokenId, float>> read(const Json& field) {
    if (field.is_object()) {
      for (const auto& [key, value] : field.items()) add(Json(key), value);
    } else if (field.is_array()) {
      for (const Json& pair : field) {
        if (!pair.is_array() || pair.size() != 2) fail_form();
        add(pair[0], pair[1]);
      }
    } else {
      fail_form();
    }
    return std::move(biases_);
  }

 private:
  [[noreturn]] static void fail_form() {
    fail(ErrorCode::kInvalidArgument,
         "\"logit_bias\" must be an object {{token: bias}} or an array of [token, bias]; bias is a "
         "number, or false "
         "to forbid the token");
  }

  void add(const Json& token, const Json& bias) {
    float value = -std::numeric_limits<float>::infinity();
    if (bias.is_number()) {
      value = bias.get<float>();
    } else if (bias != Json(false)) {
      fail_form();
    }
    for (const int64_t id : ids(token)) {
      if (id < 0 || id >= tokenizer_.n_tokens()) continue;  // as other servers have it
      biases_.emplace_back(TokenId{static_cast<int32_t>(id)}, value);
    }
  }

  // A token's number, that number as a text, or a text of several tokens.
  std::vector<int64_t> ids(const Json& token) const {
    if (token.is_number_integer()) return {token.get<int64_t>()};
    if (!token.is_string()) fail_form();
    const auto text = token.get<std::string>();
    int64_t id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (error == std::errc() && end == text.data() + text.size()) return {id};
    std::vector<int64_t> result;
    for (const TokenId one : tokenizer_.tokenize(text, {.add_special = false}))
      result.push_back(to_int(one));
    return result;
  }

  const Tokenizer& tokenizer_;
  std::vector<std::pair<TokenId, float>> biases_;
};

void read_sampling(const Json& request, const Tokenizer& tokenizer, SamplingOptions& sampling) {
  const auto set = [&](const char* name, float& value) {
    if (const auto number = number_field(request, name)) value = static_cast<float>(*number);
  };
  set("temperature", sampling.temperature);
  sampling.temperature = std::max(sampling.temperature, 0.0f);
  set("top_p", sampling.top_p);
  set("min_p", sampling.min_p);
  set("repeat_penalty", sampling.repeat_penalty);
  set("presence_penalty", sampling.presence_penalty);
  set("frequency_penalty", sampling.frequency_penalty);
  if (const auto top_k = int_field(request, "top_k")) sampling.top_k = std::max(*top_k, 0);
  if (const auto last_n = int_field(request, "repeat_last_n", -1)) sampling.repeat_last_n = *last_n;
  // -1, or what it is without a sign, asks for one of the system's.
  if (const auto seed = number_field(request, "seed")) {
    const bool is_random = *seed < 0 || *seed == 4294967295.0;
    sampling.seed =
        is_random ? std::nullopt : std::optional(static_cast<uint64_t>(std::min(*seed, 1.8e19)));
  }
  if (const Json* bias = find_field(request, "logit_bias"))
    sampling.logit_bias = BiasReader(tokenizer).read(*bias);
}

std::optional<int> read_logprobs(const Json& request) {
  if (const auto n = int_field(request, "n_probs", 0, kMaxLogprobs)) return *n > 0 ? n : std::nullopt;
  const Json* logprobs = find_field(request, "logprobs");
  if (logprobs == nullptr) return std::nullopt;
  if (logprobs->is_number()) return int_field(request, "logprobs", 0, kMaxLogprobs);
  if (!bool_field(request, "logprobs").value()) return std::nullopt;
  return int_field(request, "top_logprobs", 0, kMaxLogprobs).value_or(0);
}

AnswerFields::Speculative read_speculative(const Json& request) {
  AnswerFields::Speculative speculative;
  const Json* field = find_field(request, "speculative");
  if (field == nullptr) return speculative;
  if (field->is_boolean()) {
    if (!field->get<bool>()) speculative.max_draft = 0;
  } else if (field->is_string()) {
    speculative.method = field->get<std::string>();
  } else if (field->is_object()) {
    speculative.method = string_field(*field, "method");
    speculative.max_draft = int_field(*field, "max_draft", -1).value_or(-1);
  } else {
    fail(ErrorCode::kInvalidArgument,
         "\"speculative\" must be true, false, a method's name, or an object with \"method\" and "
         "\"max_draft\"");
  }
  return speculative;
}

// OpenAI's predicted outputs: {"type": "content", "content": ...}, a text or an array of texts.
std::vector<TokenId> read_prediction(const Json& request, const Tokenizer& tokenizer) {
  const Json* prediction = object_field(request, "prediction");
  const Json* content = prediction != nullptr ? find_field(*prediction, "content") : nullptr;
  if (content == nullptr) return {};
  std::string text;
  if (content->is_string()) {
    text = *content;
  } else if (content->is_array()) {
    for (const Json& part : *content) {
      if (part.is_object()) text += string_field(part, "text").value_or("");
    }
  } else {
    fail(ErrorCode::kInvalidArgument,
         "\"content\" of \"prediction\" must be a string or an array of texts");
  }
  return tokenizer.tokenize(text, {.add_special = false});
}

int read_max_tokens(const Json& request, int unless_said) {
  std::optional<int> wanted;
  for (const char* name : {"max_completion_tokens", "max_tokens", "n_predict"}) {
    if (!wanted) wanted = int_field(request, name, -1);
  }
  return wanted.value_or(unless_said);
}

// With the tokens that end a text where they are to be ignored. null is minus infinity.
Json bias_json(const GenerationOptions& generation, const Tokenizer& tokenizer) {
  Json list = Json::array();
  for (const auto& [token, bias] : generation.sampling.logit_bias) {
    list.push_back(
        {{"token", to_int(token)}, {"bias", std::isfinite(bias) ? Json(bias) : Json(nullptr)}});
  }
  for (int32_t id = 0; generation.ignore_eos && id < tokenizer.n_tokens(); ++id) {
    if (tokenizer.ends_text(TokenId{id})) list.push_back({{"token", id}, {"bias", nullptr}});
  }
  return list;
}

}  // namespace

AnswerFields read_answer_fields(const Json& request, const AnswerDefaults& defaults,
                                const Tokenizer& tokenizer) {
  refuse_other_samplers(request);
  AnswerFields fields;
  fields.generation = defaults.generation;
  read_sampling(request, tokenizer, fields.generation.sampling);
  fields.generation.max_tokens = read_max_tokens(request, defaults.generation.max_tokens);
  fields.generation.sampling.n_logprobs = read_logprobs(request);
  if (find_field(request, "stop") != nullptr) fields.generation.stop = read_stops(request, "stop");
  fields.generation.ignore_eos =
      bool_field(request, "ignore_eos").value_or(defaults.generation.ignore_eos);
  const auto n = int_field(request, "n", 1, kMaxChoices);
  fields.n_choices = n ? *n : int_field(request, "n_cmpl", 1, kMaxChoices).value_or(1);
  fields.streams = bool_field(request, "stream").value_or(false);
  if (const Json* options = object_field(request, "stream_options")) {
    fields.includes_usage = bool_field(*options, "include_usage").value_or(false);
  }
  fields.returns_tokens = bool_field(request, "return_tokens").value_or(false);
  fields.returns_texts = bool_field(request, "return_texts").value_or(false);
  fields.times_each = bool_field(request, "timings_per_token").value_or(false);
  fields.returns_progress = bool_field(request, "return_progress").value_or(false);
  fields.is_verbose = bool_field(request, "verbose").value_or(false);
  fields.caches_prompt = bool_field(request, "cache_prompt").value_or(true);
  fields.generation.sampling.logprobs_of_draws =
      bool_field(request, "post_sampling_probs").value_or(false);
  fields.priority = int_field(request, "priority", -1000, 1000).value_or(0);
  fields.speculative = read_speculative(request);
  fields.prediction = read_prediction(request, tokenizer);
  if (const Json* wanted = array_field(request, "response_fields")) {
    for (const Json& name : *wanted) {
      if (name.is_string()) fields.response_fields.push_back(name);
    }
  }
  const ResponseFormat format = read_response_format(request);
  fields.generation.grammar.text =
      format.schema.empty() ? format.grammar : grammar_of_schema(format.schema);
  validate(fields.generation, tokenizer.n_tokens());
  return fields;
}

Json settings_json(const AnswerFields& fields, uint64_t seed, const Tokenizer& tokenizer) {
  const GenerationOptions& generation = fields.generation;
  const SamplingOptions& sampling = generation.sampling;
  return {{"seed", seed},
          {"temperature", sampling.temperature},
          {"dynatemp_range", 0.0},
          {"dynatemp_exponent", 1.0},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"top_n_sigma", -1.0},
          {"xtc_probability", 0.0},
          {"xtc_threshold", 0.1},
          {"typical_p", 1.0},
          {"repeat_last_n", sampling.repeat_last_n},
          {"repeat_penalty", sampling.repeat_penalty},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"dry_multiplier", 0.0},
          {"mirostat", 0},
          {"adaptive_target", -1.0},
          {"adaptive_decay", 0.9},
          {"max_tokens", generation.max_tokens},
          {"n_predict", generation.max_tokens},
          {"n_keep", 0},
          {"ignore_eos", generation.ignore_eos},
          {"logit_bias", bias_json(generation, tokenizer)},
          {"stop", generation.stop},
          {"stream", fields.streams},
          {"n_probs", sampling.n_logprobs.value_or(0)},
          {"samplers", Json::array({"penalties", "top_k", "top_p", "min_p", "temperature"})},
          {"timings_per_token", fields.times_each},
          {"post_sampling_probs", generation.sampling.logprobs_of_draws}};
}

}  // namespace forerun
