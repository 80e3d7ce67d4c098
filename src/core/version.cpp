#include "core/version.h"

namespace forerun {

const char* const kVersionText = FORERUN_VERSION;

}  // namespace forerun
