// A request for OpenAI's responses as one for its chat completions.
#pragma once

#include "serve/protocol/json_fields.h"

namespace forerun {

// Instructions, input, tools, text format, max_output_tokens. Throws Error{kInvalidArgument}.
Json chat_request_of_responses(const Json& request);

}  // namespace forerun
