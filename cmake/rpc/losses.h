// How often a server was lost that computes layers for us.
//
// ggml talks to each of them on a thread of its own and ends the process there when one goes away. Our build
// of it counts instead, gives zeros to whoever waits for an answer, and goes on (ggml-rpc.h): those who
// compute over RPC look here before they believe what they got.
#pragma once

#include <atomic>
#include <cstdint>

namespace forerun {

inline std::atomic<int64_t> n_rpc_losses{0};

}  // namespace forerun
