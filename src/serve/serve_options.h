// What a server is started with.
#pragma once

#include <forerun/engine_options.h>
#include <forerun/pooling.h>

#include <optional>
#include <string>
#include <vector>

#include "serve/http/http_server.h"
#include "serve/protocol/answer_fields.h"
#include "serve/tenants.h"

namespace forerun {

struct ServeOptions {
  HttpServerOptions http;
  EngineOptions engine;
  AnswerDefaults answers;
  std::vector<std::string> aliases = {};  // names of the model; the first is the one it is listed by
  std::vector<std::string> tags = {};
  std::vector<std::string> api_keys = {};  // none here and of tenants: none is needed
  std::vector<Tenant> tenants = {};
  std::string cors_origins = "*";  // "*", "localhost", or origins with commas between them
  std::string chat_template = {};  // instead of the model's: its source, or a name that llama.cpp knows
  bool separates_thoughts = true;  // what a model thinks from what it says, unless a request says so
  // Whether models that can do without do think, unless a request says so; nullopt: as their template
  // has it.
  std::optional<bool> thinks = {};
  bool is_verbose = false;              // answers to chats say what the model was given
  std::optional<Pooling> pooling = {};  // of vectors; nullopt: as the model's file says, else the last
  int max_waiting = 256;                // requests that may wait for their turn
  bool shows_slots = true;
  bool shows_metrics = true;
  bool has_page = true;
};

}  // namespace forerun
