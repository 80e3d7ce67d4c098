#include "model/llama/llama_threads.h"

#include <algorithm>

namespace forerun {

LlamaThreads give_threads(llama_context* context, const Device& device) {
  ggml_threadpool_params params = ggml_threadpool_params_default(device.n_threads());
  const auto has_place = [](int cpu) { return cpu < GGML_MAX_N_THREADS; };
  params.strict_cpu = !device.cpus().empty() && std::ranges::all_of(device.cpus(), has_place);
  for (const int cpu : device.cpus()) {
    if (params.strict_cpu) params.cpumask[cpu] = true;
  }
  LlamaThreads threads(ggml_threadpool_new(&params));
  llama_attach_threadpool(context, threads.get(), threads.get());
  return threads;
}

}  // namespace forerun
