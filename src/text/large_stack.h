// Runs a function on a stack of a chosen size.
//
// For library code that recurses as deep as its input is long: on the caller's
// stack, whose size is not ours to choose, a long input would overflow it.
#pragma once

#include <cstddef>
#include <functional>

namespace forerun {

// Calls `function` on another thread that has at least `n_bytes` of stack, and
// waits. What it throws is thrown here. Memory is used only as far as the stack
// grows. Throws Error{kOutOfMemory} if there is no address space for it.
void run_on_large_stack(size_t n_bytes, const std::function<void()>& function);

// The same for a function that matches a text of so many bytes with std::regex; a short one is matched
// on the caller's stack.
void run_on_stack_for_regex(size_t n_text_bytes, const std::function<void()>& function);

}  // namespace forerun
