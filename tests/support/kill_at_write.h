// Ends this process in the middle of changing files, as `kill -9` would at that moment.
//
// Stands in for the system's calls that change files: write, sync, shorten, rename, remove. The
// n-th of them that concerns a file below a folder does not happen, except that a write is
// begun: any number of its first bytes are written. A test links this, or a program is run with
// it in LD_PRELOAD and in its environment
//
//   KILL_UNDER   the folder
//   KILL_AT      which call, from 1
#pragma once

#include <string>

namespace forerun::test {

// From now on in this process; 0: never.
void kill_at_write(int n, const std::string& folder);

}  // namespace forerun::test
