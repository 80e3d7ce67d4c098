// The version of forerun.
#pragma once

namespace forerun {

extern const char* const kVersionText;  // "0.2.0"

}  // namespace forerun
