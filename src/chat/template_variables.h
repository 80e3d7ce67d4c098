// What a chat template sees of a request: what `transformers` would show it.
//
// Messages, tools and arguments pass through as they came. Clients of OpenAI's protocol send some things
// in another form than templates are written for; only those are changed, and only where a template
// needs it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "chat/chat_format.h"
#include "json.h"

namespace forerun {

struct TemplateTraits {
  std::string source;
  std::map<std::string, bool> abilities;  // of llama.cpp's analysis: "supports_object_arguments", ...
};

// In JSON, for ChatTemplate::render(). There may be several ways to say the same: where a template fails
// with the first, the next is meant.
std::vector<std::string> template_variables(const ChatRequest& request, const TemplateTraits& traits);

}  // namespace forerun
