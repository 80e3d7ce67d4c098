// What the answer must look like: OpenAI's "response_format", llama-server's "json_schema" and
// "grammar".
#pragma once

#include <string>

#include "serve/protocol/json_fields.h"

namespace forerun {

struct ResponseFormat {
  std::string schema;   // JSON; empty: none
  std::string grammar;  // GBNF; empty: none
};

// Throws Error{kInvalidArgument}.
ResponseFormat read_response_format(const Json& request);

}  // namespace forerun
