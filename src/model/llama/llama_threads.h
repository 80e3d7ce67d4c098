// The threads that libllama computes with on a CPU: as many as a Device has, on the same CPUs.
#pragma once

#include <ggml-cpu.h>
#include <llama.h>

#include <memory>

#include "model/device.h"

namespace forerun {

struct FreeLlamaThreads {
  void operator()(ggml_threadpool* pool) const { ggml_threadpool_free(pool); }
};
// The context that they are given to goes first.
using LlamaThreads = std::unique_ptr<ggml_threadpool, FreeLlamaThreads>;

// Without threads of its own a context would start some for every pass, where the caller is pinned all
// on one CPU.
LlamaThreads give_threads(llama_context* context, const Device& device);

}  // namespace forerun
