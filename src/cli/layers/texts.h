// What commands share that learn from what the model answers.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "gguf/gguf_file.h"
#include "layers/layer_file.h"
#include "tune/answers.h"
#include "tune/layer_search.h"

namespace forerun {

// Which texts layers are searched on.
struct TextOptions {
  int n_texts;   // prompts
  int n_tokens;  // of each answer
};
// --texts (what it counts is for the caller to say), --tokens.
void add_text_options(CLI::App& command, TextOptions& options, const std::string& n_texts_help);
// --method, --candidates, --patience, --skip, --cap, --seed.
void add_layer_search_options(CLI::App& command, LayerSearchOptions& options);

// The first turns of prompts in files as 'bench spec' reads them, as the model is asked them: at
// most `n`, alike of every category. Throws Error.
std::vector<std::vector<TokenId>> prompts_of(const LoadedModel& loaded,
                                             const std::vector<std::string>& files, int n);

struct AnswerWork {
  std::string what;  // "answering", in front of the line that shows how far it is
  GenerationOptions generation;
  std::function<bool()> is_cancelled = {};
};
// Answers as answer_prompts() has them, with a line that shows how far it is.
std::vector<SearchText> shown_answers(Executor& executor, const LoadedModel& loaded,
                                      const std::vector<std::vector<TokenId>>& prompts,
                                      const AnswerWork& work);

// Searches with a line that shows how far it is.
LayerSearchResult shown_search(LayerObjective& objective, int n_layers, LayerSearchOptions options,
                               const std::string& what);

// What was found, to be kept: where nothing pays, the whole model, which means not to draft.
struct KeptLayers {
  LayerSet layers;
  LayerOrigin found;
};
KeptLayers kept_layers(LayerSearchResult result, const LayerOrigin& how);

// The blocks that a derived model was given as redundant ones, by its metadata; nullopt: there
// is nothing about them.
std::optional<LayerSet> planted_layers(const GgufFile& file, int n_layers);
// How many of them a set leaves out, in words.
std::string planted_words(const LayerSet& layers, const LayerSet& without_planted);

}  // namespace forerun
