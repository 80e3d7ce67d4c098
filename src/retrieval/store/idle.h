// Work that must not take time from anything else.
#pragma once

#include <functional>

namespace forerun {

// Calls `function` on a new thread that the system runs only when nothing else wants the
// CPU or the disk, and waits. What it throws is thrown here.
//
// The waiting thread keeps its priority. So it, and not `function`, takes locks that busy
// threads want too: a thread of low priority can be stopped for long while it holds one.
void run_when_idle(const std::function<void()>& function);

}  // namespace forerun
