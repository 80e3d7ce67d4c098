// /set: options of the answers, changed within a conversation. They are the command line's,
// with its rules.
#pragma once

#include <string>

#include "cli/generation_options.h"

namespace forerun {

// The flags with one of them changed. Throws Error if there is no such setting, or the value
// is none for it.
GenerationFlags changed_setting(const GenerationFlags& flags, const std::string& name,
                                const std::string& value);

// A line for each setting, or for the one of that name. Throws Error if there is none.
std::string settings_text(const GenerationFlags& flags, const std::string& name);

}  // namespace forerun
