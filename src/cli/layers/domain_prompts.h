// Prompts by domain: of known kinds, or of kinds that are found.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/loaded_model.h"
#include "layers/domain_file.h"
#include "prompts/prompts.h"
#include "tune/domain_anchors.h"

namespace forerun {

// Where the prompts of domains come from.
struct DomainSources {
  std::vector<std::string> prompts;  // files
  std::vector<std::string> domains;  // "NAME=FILE"
  int n_unlabelled = 0;              // domains to be found; 0: categories are the domains
};

// Domains that are found in prompts none of which has a category.
constexpr int kDefaultUnlabelled = 6;

// A domain's prompts, and what the model makes of them.
struct DomainPrompts {
  std::string name;
  std::vector<std::vector<TokenId>> prompts = {};
  std::vector<std::string> categories = {};  // of each; "" where it has none
  std::vector<PromptState> states = {};

  DomainVectors vectors(PromptVector kind) const;
  // How many prompts are of each category, in the order of the prompts.
  std::vector<std::pair<std::string, int>> category_counts() const;
};

// Throws Error for files that are none, and where there is no prompt at all.
std::vector<BenchPrompt> read_all_prompts(const DomainSources& sources);

// How many domains are to be found; 0 where categories say which there are. Throws Error for
// categories that only some of the prompts have.
int n_domains_to_find(const std::vector<BenchPrompt>& prompts, const DomainSources& sources);

// The first turns, as the model is asked them. Throws Error for domains that are too few or too
// small.
std::vector<DomainPrompts> by_category(const std::vector<BenchPrompt>& prompts,
                                       const LoadedModel& loaded);
// All of them together, for domains to be found in.
DomainPrompts in_one(const std::vector<BenchPrompt>& prompts, const LoadedModel& loaded);

// Prompts whose states are alike make a domain, called by a number from 1. Throws Error where
// there is nothing to tell them apart by.
std::vector<DomainPrompts> found_domains(DomainPrompts all, int n_embd, int n_domains,
                                         PromptVector kind);

}  // namespace forerun
