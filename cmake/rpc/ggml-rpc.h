// Included before ggml-rpc.cpp, whose thread for a connection aborts when the connection is lost.
//
// There `msg_ptr` is the message that could not be sent or was not answered. In all other functions the name
// means the object below, and what aborts does so as ever: on the caller's thread, which may throw instead
// (gguf/ggml_aborts.h).
#pragma once

#include <cstring>

#include "ggml-impl.h"
#include "losses.h"

namespace forerun {

struct NoMessage {};

template <typename... Args>
[[noreturn]] inline void rpc_failed(const NoMessage&, const char* file, int line, const char* format,
                                    Args... args) {
  ggml_abort(file, line, format, args...);
}

template <typename MessagePointer, typename... Args>
void rpc_failed(const MessagePointer& message, const char*, int, const char*, Args...) {
  ++n_rpc_losses;
  if (message->output != nullptr) std::memset(message->output, 0, message->output_size);
}

}  // namespace forerun

static const forerun::NoMessage msg_ptr;

#undef GGML_ABORT
#define GGML_ABORT(...) forerun::rpc_failed(msg_ptr, __FILE__, __LINE__, __VA_ARGS__)
