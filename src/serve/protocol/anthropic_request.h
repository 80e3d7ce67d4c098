// A request for Anthropic's messages as one for OpenAI's chat completions.
#pragma once

#include "serve/protocol/json_fields.h"

namespace forerun {

// Messages, tools, tool_choice, stop_sequences, thinking. Throws Error{kInvalidArgument}.
Json chat_request_of_anthropic(const Json& request);

}  // namespace forerun
