// What a caller says about drafting.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace forerun {

// How drafts are made and checked. They change how fast a text comes, not the text.
struct SpeculationOptions {
  // "auto" (what pays, or nothing), "none", or a method's name (forerun/drafting_methods.h).
  std::string method = "auto";
  // Which drafted tokens are taken: "match" gives the text that there is without drafts;
  // "target", "leviathan" and "rejection" are the rules of papers, which keep its distribution.
  std::string accept = "match";
  // How many drafted tokens are verified at once: "auto" (by measured cost), "roofline",
  // "own" (as many as the method's authors do), or a number. Empty: what suits the method.
  std::string tree = {};
  // Options of methods by name, such as {"pld-ngram", "3"}; the same header lists them.
  std::map<std::string, std::string> options = {};
  // Datastores never cost an answer: one that is damaged, cannot be read or cannot be written
  // (as while another process does) gives a warning (EngineOptions::warn) and is used as far as
  // possible. Only one that does not exist or is for another vocabulary is an Error.

  // Datastores to search. Nothing is added to them.
  std::vector<std::filesystem::path> datastores = {};
  // A datastore to search and to add answers to. Empty: nothing is stored.
  std::filesystem::path live_datastore = {};
};

}  // namespace forerun
