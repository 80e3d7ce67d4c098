// An engine on the CPU, for tests that load models: few threads, a short context, no drafts.
#pragma once

#include <forerun/engine.h>

#include <string>

#include "support/model_files.h"

namespace forerun::test {

struct EngineSize {
  int n_threads = 1;
  int n_parallel = 1;
  int n_context = 256;
};

inline EngineOptions engine_options(const std::string& model, const EngineSize& size = {}) {
  EngineOptions options;
  options.model = model_file(model).string();
  options.device = "cpu";
  options.n_threads = size.n_threads;
  options.pin_threads = false;
  options.n_context = size.n_context;
  options.n_parallel = size.n_parallel;
  options.speculation.method = "none";
  return options;
}

}  // namespace forerun::test
