#include "engine/hub_names.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "engine/model_names.h"

namespace forerun {
namespace {

constexpr std::string_view kGguf = ".gguf";
constexpr size_t kMaxName = 96;
constexpr size_t kMaxPath = 512;
constexpr size_t kMaxComponent = 200;  // what is written beside a file has a longer name

bool is_letter_or_digit(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

std::string in_capitals(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

// Of an organisation, a repository or a quantisation.
bool is_hub_word(std::string_view word) {
  return !word.empty() && word.size() <= kMaxName && is_letter_or_digit(word.front()) &&
         std::all_of(word.begin(), word.end(),
                     [](char c) { return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; });
}

// Whether the path has it as a word of its own: Q4_K is not in "model-Q4_K_M".
bool has_quant(std::string_view path, std::string_view quant) {
  const std::string text = in_capitals(path), wanted = in_capitals(quant);
  for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) {
    const size_t end = at + wanted.size();
    const bool begins = at == 0 || !is_letter_or_digit(text[at - 1]);
    const bool ends = end == text.size() || (!is_letter_or_digit(text[end]) && text[end] != '_');
    if (begins && ends) return true;
  }
  return false;
}

// "Q4_K_M", "IQ2_XS", "BF16", in capitals.
bool is_quant(std::string_view word) {
  if (word == "F16" || word == "BF16" || word == "F32" || word == "MXFP4" || word == "NVFP4")
    return true;
  if (word.starts_with("IQ") || word.starts_with("TQ")) word.remove_prefix(1);
  return word.size() >= 2 && word[0] == 'Q' && std::isdigit(static_cast<unsigned char>(word[1])) != 0 &&
         std::all_of(word.begin(), word.end(), [](char c) { return is_letter_or_digit(c) || c == '_'; });
}

bool is_part_of_something_else(std::string_view path) {
  const std::string text = in_capitals(path);
  return text.find("MMPROJ") != std::string::npos || text.find("IMATRIX") != std::string::npos;
}

std::vector<std::string> files_below(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (std::filesystem::recursive_directory_iterator entry(folder, ignored), end;
       !ignored && entry != end; entry.increment(ignored)) {
    std::error_code gone;
    if (!entry->is_regular_file(gone)) continue;
    files.push_back(entry->path().lexically_relative(folder).generic_string());
  }
  return files;
}

std::vector<HubModel> whole_models(const std::filesystem::path& folder) {
  std::vector<HubModel> models = hub_models(files_below(folder));
  std::erase_if(models, [](const HubModel& model) { return !model.is_whole(); });
  return models;
}

std::vector<std::string> folders_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (is_hub_word(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::optional<HubName> parse_hub_name(std::string_view text) {
  HubName name;
  if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    name.quant = text.substr(colon + 1);
    if (!is_hub_word(name.quant)) return std::nullopt;
    text = text.substr(0, colon);
  }
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  if (!is_hub_word(text.substr(0, slash)) || !is_hub_word(text.substr(slash + 1))) return std::nullopt;
  name.repo = text;
  return name;
}

bool is_safe_hub_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPath) return false;
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') return false;
  }
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view component = path.substr(0, slash);
    if (component.empty() || component == "." || component == "..") return false;
    if (component.size() > kMaxComponent) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

std::optional<SplitPart> parse_split(std::string_view stem) {
  constexpr std::string_view kPattern = "-#####-of-#####";
  if (stem.size() <= kPattern.size()) return std::nullopt;
  const std::string_view suffix = stem.substr(stem.size() - kPattern.size());
  const bool is_part =
      std::equal(kPattern.begin(), kPattern.end(), suffix.begin(), [](char pattern, char c) {
        return pattern == '#' ? std::isdigit(static_cast<unsigned char>(c)) != 0 : pattern == c;
      });
  if (!is_part) return std::nullopt;
  SplitPart part{.model = std::string(stem.substr(0, stem.size() - kPattern.size())),
                 .number = std::stoi(std::string(suffix.substr(1, 5))),
                 .count = std::stoi(std::string(suffix.substr(10, 5)))};
  if (part.number < 1 || part.number > part.count) return std::nullopt;
  return part;
}

std::vector<HubModel> hub_models(std::span<const std::string> files) {
  std::map<std::pair<std::string, int>, std::set<std::string>> parts;  // by model and number of parts
  for (const std::string& file : files) {
    if (!file.ends_with(kGguf) || is_part_of_something_else(file) || !is_safe_hub_path(file)) continue;
    const std::string stem = file.substr(0, file.size() - kGguf.size());
    const auto split = parse_split(stem);
    parts[split ? std::pair(split->model, split->count) : std::pair(stem, 1)].insert(file);
  }
  std::vector<HubModel> models;
  for (const auto& [model, names] : parts) {
    models.push_back(
        {.name = model.first, .files = {names.begin(), names.end()}, .n_parts = model.second});
  }
  return models;
}

std::optional<HubModel> choose_model(std::span<const HubModel> models, const std::string& quant) {
  const auto with = [&](const std::string& wanted) {
    return std::find_if(models.begin(), models.end(),
                        [&](const HubModel& model) { return has_quant(model.name, wanted); });
  };
  if (!quant.empty()) {
    const auto found = with(quant);
    return found != models.end() ? std::optional(*found) : std::nullopt;
  }
  if (models.empty()) return std::nullopt;
  for (const char* usual : {"Q4_K_M", "Q8_0"}) {
    if (const auto found = with(usual); found != models.end()) return *found;
  }
  return models.front();
}

std::string quant_of(std::string_view name) {
  const std::string text = in_capitals(name);
  std::string last;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find_first_of("-./ ", at), text.size());
    // Words may be joined by underscores too: "model_q8_0".
    for (size_t begin = at; begin < end;) {
      if (is_quant(std::string_view(text).substr(begin, end - begin))) {
        last = text.substr(begin, end - begin);
        break;
      }
      begin = std::min(text.find('_', begin), end) + 1;
    }
    at = end + 1;
  }
  return last;
}

std::filesystem::path hub_folder(const std::string& repo) {
  return models_folder() / "hub" / repo;
}

std::vector<PulledModel> pulled_models() {
  std::vector<PulledModel> pulled;
  std::set<std::string> names;
  const std::filesystem::path hub = models_folder() / "hub";
  for (const std::string& organisation : folders_in(hub)) {
    for (const std::string& name : folders_in(hub / organisation)) {
      const std::string repo = organisation + "/" + name;
      for (const HubModel& model : whole_models(hub_folder(repo))) {
        const std::string quant = quant_of(model.name);
        PulledModel one{.name = quant.empty() ? repo : repo + ":" + quant};
        for (const std::string& file : model.files) one.files.push_back(hub_folder(repo) / file);
        // Its name means another file already.
        if (!names.insert(one.name).second) one.name = one.files.front().string();
        pulled.push_back(std::move(one));
      }
    }
  }
  return pulled;
}

std::optional<std::filesystem::path> find_pulled(const HubName& name, const std::string& file) {
  std::vector<HubModel> models = whole_models(hub_folder(name.repo));
  if (!file.empty()) {
    std::erase_if(models, [&](const HubModel& model) {
      return std::find(model.files.begin(), model.files.end(), file) == model.files.end();
    });
  }
  const auto model = choose_model(models, file.empty() ? name.quant : "");
  if (!model) return std::nullopt;
  return hub_folder(name.repo) / model->files.front();
}

}  // namespace forerun
