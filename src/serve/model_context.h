// What handlers know of the model that is served, once it is loaded.
#pragma once

#include <forerun/engine.h>

#include <cstdint>
#include <string>
#include <vector>

#include "chat/chat_format.h"
#include "serve/engine_thread.h"
#include "serve/serve_options.h"

namespace forerun {

struct ModelContext {
  EngineThread& engine;
  const ServeOptions& options;
  ModelFacts facts;
  Tokenizer tokenizer;
  ChatFormat chat;
  int n_context;                     // tokens a request may have
  std::vector<std::string> aliases;  // the first is its id
  int64_t created;                   // seconds since 1970

  std::string tenant = {};  // whose request is answered; empty: everybody's

  const std::string& id() const { return aliases.front(); }
};

}  // namespace forerun
