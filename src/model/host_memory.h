// How much memory this process could still take.
#pragma once

#include <cstddef>

namespace forerun {

// What the system reports as available, or less where a control group limits us.
// A very large number where neither is known.
size_t available_host_memory();

}  // namespace forerun
