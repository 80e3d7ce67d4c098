#include "serve/protocol/server_info.h"

#include <fmt/format.h>
#include <forerun/drafting_methods.h>

#include "serve/protocol/answer_json.h"

namespace forerun {

HttpResponse list_models(const ModelContext& model) {
  const Json meta = {{"n_vocab", model.facts.n_vocab},
                     {"n_ctx", model.n_context},
                     {"n_ctx_train", model.facts.n_context_trained},
                     {"n_embd", model.facts.n_embd},
                     {"n_params", model.facts.n_parameters},
                     {"size", model.facts.n_bytes}};
  const Json entry = {{"id", model.id()},      {"object", "model"},        {"created", model.created},
                      {"owned_by", "forerun"}, {"aliases", model.aliases}, {"tags", model.options.tags},
                      {"meta", meta}};
  return {.body = to_text({{"object", "list"}, {"data", Json::array({entry})}})};
}

HttpResponse show_props(const ModelContext& model) {
  const EngineStatistics statistics = model.engine.engine()->statistics();
  const GenerationOptions& defaults = model.options.answers.generation;
  AnswerFields fields;
  fields.generation = defaults;
  const Json settings =
      settings_json(fields, defaults.sampling.seed.value_or(4294967295), model.tokenizer);
  const auto piece = [&](const std::optional<TokenId>& token) {
    return token ? model.tokenizer.piece(*token) : std::string();
  };
  Json methods = Json::array();
  for (const DraftingMethod& method : drafting_methods())
    methods.push_back({{"name", method.name}, {"summary", method.summary}});
  const Json props = {
      {"default_generation_settings", {{"n_ctx", model.n_context}, {"params", settings}}},
      {"total_slots", model.options.engine.n_parallel},
      {"model_alias", model.id()},
      {"model_path", model.facts.path.string()},
      {"model_fingerprint", fmt::format("{:016x}", model.facts.fingerprint)},
      {"modalities", {{"vision", false}, {"audio", false}}},
      {"n_cells", statistics.n_cells},
      {"bos_token", piece(model.tokenizer.bos())},
      {"eos_token", piece(model.tokenizer.eos())},
      {"speculation", model.options.engine.speculation.method},
      {"speculation_methods", methods},
      {"build_info", system_fingerprint()}};
  return {.body = to_text(props)};
}

HttpResponse show_slots(const ModelContext& model) {
  const EngineStatistics statistics = model.engine.engine()->statistics();
  Json slots = Json::array();
  for (int i = 0; i < model.options.engine.n_parallel; ++i) {
    slots.push_back({{"id", i},
                     {"n_ctx", model.n_context},
                     {"speculative", model.options.engine.speculation.method != "none"},
                     {"is_processing", i < statistics.n_running}});
  }
  return {.body = to_text(slots)};
}

}  // namespace forerun
