// The drafting methods there are: the one list of their names, options and makers. Their flags, their
// parts of the help and of printed settings follow from that.
#pragma once

#include <forerun/drafting_methods.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/option_visitor.h"
#include "draft/model/draft_model.h"
#include "draft/model/layer_skipping.h"
#include "draft/model/model_drafter.h"
#include "draft/text/jacobi.h"
#include "draft/text/pia.h"
#include "draft/text/pld.h"
#include "draft/text/rest.h"
#include "draft/text/sssd.h"
#include "draft/text/suffix.h"
#include "layers/clasp.h"
#include "layers/del.h"
#include "layers/knapspec.h"
#include "layers/knnssd.h"
#include "layers/selfsd.h"
#include "layers/swift.h"
#include "stopping/rules.h"

namespace forerun {

// What methods may use.
struct DraftResources {
  SegmentSource segments;  // of the datastores; empty: there are none
  // Of the model that verifies, and what its passes cost; needed to draft with it.
  Executor* executor = nullptr;
  PassCosts* costs = nullptr;
  // Loads a model to draft with. Throws Error, also where its vocabulary is another than the
  // verifying model's.
  std::function<std::shared_ptr<DraftModel>(const DraftModelChoice&)> draft_model = {};
  // Gets what went wrong beside the requests, as one line. May be empty.
  std::function<void(std::string_view)> warn = {};
};

struct UniformOptions {
  double skip = 0.45;  // share of the blocks

  void describe(OptionVisitor& visitor) {
    visitor.visit({"skip", "Share of the blocks left out"}, skip, {0.0, 1.0});
  }
};

// How the layers or the model that drafts are chosen, and how they draft.
template <typename Choice>
struct ChainMethodOptions {
  Choice choice = {};
  ChainOptions draft = {};

  void describe(OptionVisitor& visitor) {
    choice.describe(visitor);
    draft.describe(visitor);
  }
};

struct AutoOptions {
  // The method whose layers the model drafts with where that pays, or "none".
  std::string layers = "knapspec";

  void describe(OptionVisitor& visitor);
};

// As in KnapSpec's program and its re-implementations of others.
inline constexpr ChainOptions kExitBelow07 = {.tokens = 10, .threshold = 0.7, .siblings = false};
// As in Draft & Verify's notebooks and in KNN-SSD's program.
inline constexpr ChainOptions kExitBelow08 = {.tokens = 12, .threshold = 0.8, .siblings = false};

// The options of all methods.
struct MethodOptions {
  StoppingOptions stopping;  // of all that draft one token after the other
  AutoOptions automatic;
  PldOptions pld;
  RestOptions rest;
  PiaOptions pia;
  JacobiOptions jacobi;
  SssdOptions sssd;
  SuffixOptions suffix;
  ChainMethodOptions<DraftModelChoice> draft = {
      .draft = {.tokens = 16, .threshold = 0.4, .siblings = false}};
  ChainMethodOptions<UniformOptions> uniform;
  ChainMethodOptions<SelfSdOptions> selfsd = {.draft = kExitBelow08};
  ChainMethodOptions<SwiftOptions> swift;
  ChainMethodOptions<KnnOptions> knnssd = {.draft = kExitBelow08};
  // Its own choice of lengths is better than a threshold's; the authors': 10 tokens, 0.7.
  ChainMethodOptions<KnapSpecOptions> knapspec = {
      .draft = {.tokens = 16, .threshold = 0.3, .siblings = false}};
  ChainMethodOptions<ClaspOptions> clasp = {.draft = kExitBelow07};
  ChainMethodOptions<DelOptions> del = {.draft = kExitBelow07};

  // Visits every option of every method. Names begin with the method's: "pld-ngram". They
  // are valid during the visit only.
  void describe(OptionVisitor& visitor);
};

struct MethodInfo {
  std::string_view name;
  std::string_view summary;  // one line for the help
  // Visits the method's own options, whose names do not have its name in front.
  void (*describe)(MethodOptions& options, OptionVisitor& visitor);
  // Adds its drafters.
  void (*add)(const MethodOptions& options, const DraftResources& resources, DrafterSet& drafters);
  DraftsWith drafts_with = DraftsWith::kTexts;  // all others need DraftResources::executor
  // Whether what is verified is decided by cost, unless the user says otherwise: its authors do so, or
  // it is ours.
  bool plans_by_cost = false;
  // Whether several drafters take part, which only costs can choose between.
  bool drafts_with_many = false;
  // Whether its drafts are worth nothing when only their best path is verified.
  bool needs_trees = false;
};

// In the order in which a user should read them.
std::span<const MethodInfo> draft_methods();

// Throws Error{kInvalidArgument} for a name that is not there, naming those that are.
const MethodInfo& find_method(std::string_view name);

// Throws Error{kInvalidArgument} for an unknown name, and for options of that method that
// are outside their ranges or missing.
void check_method(std::string_view name, const MethodOptions& options);

// Throws the same, and what is wrong with files that options name.
DrafterSet make_drafters(std::string_view name, const MethodOptions& options,
                         const DraftResources& resources);

bool has_method_option(std::string_view name);

// Sets one option: "pld-ngram", "4". Throws Error{kInvalidArgument} if there is no such
// option, or the value is none of its.
void set_method_option(MethodOptions& options, std::string_view name, std::string_view value);

}  // namespace forerun
