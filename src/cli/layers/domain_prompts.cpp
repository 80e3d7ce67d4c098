#include "cli/layers/domain_prompts.h"

#include <algorithm>
#include <map>

#include "core/error.h"

namespace forerun {
namespace {

void add_prompt(DomainPrompts& domain, const BenchPrompt& prompt, const LoadedModel& loaded) {
  domain.prompts.push_back(prompt_for(loaded, prompt.turns.front()));
  domain.categories.push_back(prompt.category);
  if (domain.prompts.back().empty()) fail(ErrorCode::kInvalidArgument, "{} is empty", prompt.place);
}

void check_domains(const std::vector<DomainPrompts>& domains) {
  if (domains.size() < 2) {
    fail(ErrorCode::kInvalidArgument,
         "there is one domain only, {}: give two or more ('forerun layers search' makes one set for "
         "all prompts), or let them be found (--unlabelled {})",
         domains.front().name, kDefaultUnlabelled);
  }
  for (const DomainPrompts& domain : domains) {
    if (domain.prompts.size() >= 2) continue;
    fail(ErrorCode::kInvalidArgument, "domain {} has one prompt only: give it two or more", domain.name);
  }
}

}  // namespace

DomainVectors DomainPrompts::vectors(PromptVector kind) const {
  DomainVectors vectors{.name = name, .values = {}};
  for (const PromptState& state : states) {
    const auto vector = vector_of(state, kind);
    vectors.values.insert(vectors.values.end(), vector.begin(), vector.end());
  }
  return vectors;
}

std::vector<std::pair<std::string, int>> DomainPrompts::category_counts() const {
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& category : categories) {
    if (category.empty()) continue;
    const auto place = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& count) { return count.first == category; });
    if (place == counts.end()) {
      counts.emplace_back(category, 1);
    } else {
      ++place->second;
    }
  }
  return counts;
}

std::vector<BenchPrompt> read_all_prompts(const DomainSources& sources) {
  std::vector<BenchPrompt> all;
  for (const std::string& file : sources.prompts) {
    for (BenchPrompt& prompt : read_prompts(file).prompts) all.push_back(std::move(prompt));
  }
  for (const std::string& domain : sources.domains) {
    const size_t equals = domain.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == domain.size()) {
      fail(ErrorCode::kInvalidArgument, "--domain is '{}': write NAME=FILE", domain);
    }
    for (BenchPrompt& prompt : read_prompts(domain.substr(equals + 1)).prompts) {
      prompt.category = domain.substr(0, equals);
      all.push_back(std::move(prompt));
    }
  }
  if (all.empty()) {
    fail(ErrorCode::kInvalidArgument, "no prompts: use --prompts FILE, or --domain NAME=FILE");
  }
  return all;
}

int n_domains_to_find(const std::vector<BenchPrompt>& prompts, const DomainSources& sources) {
  if (sources.n_unlabelled > 0) return sources.n_unlabelled;
  const auto has_none = [](const BenchPrompt& prompt) { return prompt.category.empty(); };
  if (std::all_of(prompts.begin(), prompts.end(), has_none)) return kDefaultUnlabelled;
  const auto first = std::find_if(prompts.begin(), prompts.end(), has_none);
  if (first == prompts.end()) return 0;
  fail(ErrorCode::kInvalidArgument,
       "{} has no category, and others have: give one to each, use --domain NAME=FILE for those "
       "without, or let domains be found (--unlabelled {})",
       first->place, kDefaultUnlabelled);
}

std::vector<DomainPrompts> by_category(const std::vector<BenchPrompt>& prompts,
                                       const LoadedModel& loaded) {
  std::vector<DomainPrompts> domains;
  std::map<std::string, size_t> places;
  for (const BenchPrompt& prompt : prompts) {
    const auto [place, is_new] = places.emplace(prompt.category, domains.size());
    if (is_new) domains.push_back({.name = prompt.category});
    add_prompt(domains[place->second], prompt, loaded);
  }
  check_domains(domains);
  return domains;
}

DomainPrompts in_one(const std::vector<BenchPrompt>& prompts, const LoadedModel& loaded) {
  DomainPrompts all{.name = "all"};
  for (const BenchPrompt& prompt : prompts) add_prompt(all, prompt, loaded);
  return all;
}

std::vector<DomainPrompts> found_domains(DomainPrompts all, int n_embd, int n_domains,
                                         PromptVector kind) {
  const std::vector<int> found = find_domains(all.vectors(kind), n_embd, n_domains);
  std::vector<DomainPrompts> domains(
      static_cast<size_t>(*std::max_element(found.begin(), found.end()) + 1));
  for (size_t d = 0; d < domains.size(); ++d) domains[d].name = std::to_string(d + 1);
  for (size_t i = 0; i < found.size(); ++i) {
    DomainPrompts& domain = domains[static_cast<size_t>(found[i])];
    domain.prompts.push_back(std::move(all.prompts[i]));
    domain.categories.push_back(std::move(all.categories[i]));
    domain.states.push_back(std::move(all.states[i]));
  }
  if (domains.size() < 2) {
    fail(ErrorCode::kInvalidArgument,
         "{} prompts are too few, or too alike, to find domains in: give more, or ask for others "
         "(--unlabelled)",
         found.size());
  }
  return domains;
}

}  // namespace forerun
