// The prompt for the middle of a text whose beginning and end are known, as models for code were trained
// on it: marks of their own around each part, other files before them.
#pragma once

#include <forerun/tokenizer.h>

#include <string>
#include <vector>

#include "serve/protocol/json_fields.h"

namespace forerun {

struct InfillFile {
  std::string name;
  std::string text;
};

// llama-server's `input_prefix`, `input_suffix`, `prompt` and `input_extra`.
struct InfillParts {
  std::string before = {};
  std::string after = {};
  std::string begun = {};              // what is there of the middle already
  std::vector<InfillFile> files = {};  // the last ones matter most
};

// Throws Error{kInvalidArgument}.
InfillParts read_infill_parts(const Json& request);

// Throws Error{kUnsupported} where the vocabulary lacks one of the marks that are needed.
void check_infill(const Tokenizer& tokenizer);

// At most `max_tokens` tokens: of what is before the gap its end is kept, of what is behind it its
// beginning, three of the first to one of the second where both are long; and of the files as many whole
// ones as fit then. nullopt: not even what is there of the middle fits.
std::optional<std::vector<TokenId>> infill_prompt(const InfillParts& parts, const Tokenizer& tokenizer,
                                                  int max_tokens);

}  // namespace forerun
