// Models of a hub, by the names that the hub gives them: "org/repo", or "org/repo:Q4_K_M" for one of
// several quantisations. This knows which files a name means and where pulled ones are kept; src/hub/
// pulls them.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace forerun {

struct HubName {
  std::string repo;   // "org/repo"
  std::string quant;  // empty: whichever is usual
};

// nullopt: it is no such name.
std::optional<HubName> parse_hub_name(std::string_view text);

// Whether a file of a repository may have that path: relative, and leading nowhere else.
bool is_safe_hub_path(std::string_view path);

// "model-00002-of-00003" without ".gguf".
struct SplitPart {
  std::string model;  // "model"
  int number = 1;     // from 1
  int count = 1;
};
// nullopt: the file is no part of a split model.
std::optional<SplitPart> parse_split(std::string_view stem);

// One model of a repository.
struct HubModel {
  std::string name;                // its file without ".gguf" and the numbers of parts
  std::vector<std::string> files;  // of all its parts, in order
  int n_parts = 1;

  bool is_whole() const { return static_cast<int>(files.size()) == n_parts; }
};

// The models among the files of a repository, by name. What helps other files is none: mmproj, imatrix.
std::vector<HubModel> hub_models(std::span<const std::string> files);

// The first that has the quantisation, or, where none is asked for, the usual one: Q4_K_M, else Q8_0,
// else the first. nullopt: there is none.
std::optional<HubModel> choose_model(std::span<const HubModel> models, const std::string& quant);

// What its name says that its weights are: "Q4_K_M"; empty: nothing.
std::string quant_of(std::string_view name);

// Where files of a repository are kept.
std::filesystem::path hub_folder(const std::string& repo);

// A model that was pulled, all its parts.
struct PulledModel {
  std::string name;  // that -m and -hf take
  std::vector<std::filesystem::path> files = {};
};
std::vector<PulledModel> pulled_models();

// Its first file; nullopt: it was not pulled. With `file`, the model that this is one of the files of.
std::optional<std::filesystem::path> find_pulled(const HubName& name, const std::string& file = {});

}  // namespace forerun
