#include <ggml-cpu.h>
#include <llama-cpp.h>
#include <llama.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "bench/engine/contender.h"
#include "core/error.h"
#include "gguf/ggml_log.h"

namespace forerun {
namespace {

class LibllamaContender final : public Contender {
 public:
  LibllamaContender(const ContenderOptions& options, const Device& device) {
    GgmlLogCapture log;
    ggml_backend_dev_t devices[] = {device.is_host() ? nullptr : device.raw(), nullptr};
    llama_model_params model_params = llama_model_default_params();
    model_params.devices = devices;
    model_params.n_gpu_layers = device.is_host() ? 0 : -1;
    model_.reset(llama_model_load_from_file(options.model.c_str(), model_params));
    if (!model_)
      fail(ErrorCode::kUnsupported, "libllama cannot load {}: {}", options.model.string(),
           log.first_error());

    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<uint32_t>(options.n_context);
    params.n_batch = params.n_ubatch = kMaxReadTokens;
    params.n_threads = params.n_threads_batch = device.n_threads();
    params.swa_full = false;  // as its own programs do
    params.no_perf = true;
    params.type_k = params.type_v = ggml_type_of(options.device.kv_type);
    context_.reset(llama_init_from_model(model_.get(), params));
    if (!context_)
      fail(ErrorCode::kOutOfMemory, "libllama cannot make a context: {}", log.first_error());
    if (device.is_host()) start_threads(device);
    n_vocab_ = llama_vocab_n_tokens(llama_model_get_vocab(model_.get()));
  }

  void read(int n) override {
    tokens_.clear();
    for (int i = 0; i < n; ++i) tokens_.push_back(made_up_token(n_tokens_ + i, n_vocab_));
    GgmlLogCapture log;
    const llama_batch batch = llama_batch_get_one(tokens_.data(), n);
    // Asking for logits waits for the device.
    if (llama_decode(context_.get(), batch) != 0 ||
        llama_get_logits_ith(context_.get(), -1) == nullptr) {
      fail(ErrorCode::kUnsupported, "libllama failed to compute: {}", log.first_error());
    }
    n_tokens_ += n;
  }

  void keep(int n) override {
    if (!llama_memory_seq_rm(llama_get_memory(context_.get()), 0, n, -1)) {
      fail(ErrorCode::kUnsupported, "libllama cannot forget the end of this model\'s context");
    }
    n_tokens_ = n;
    if (threads_) ggml_threadpool_pause(threads_.get());
  }

 private:
  // On the same CPUs as ours.
  void start_threads(const Device& device) {
    ggml_threadpool_params params = ggml_threadpool_params_default(device.n_threads());
    const auto has_place = [](int cpu) { return cpu < GGML_MAX_N_THREADS; };
    params.strict_cpu =
        !device.cpus().empty() && std::all_of(device.cpus().begin(), device.cpus().end(), has_place);
    for (const int cpu : device.cpus()) {
      if (params.strict_cpu) params.cpumask[cpu] = true;
    }
    threads_.reset(ggml_threadpool_new(&params));
    llama_attach_threadpool(context_.get(), threads_.get(), threads_.get());
  }

  struct ThreadPoolDeleter {
    void operator()(ggml_threadpool* pool) const { ggml_threadpool_free(pool); }
  };
  std::unique_ptr<ggml_threadpool, ThreadPoolDeleter> threads_;  // the context uses them
  llama_model_ptr model_;
  llama_context_ptr context_;
  int n_vocab_ = 0;
  int n_tokens_ = 0;
  std::vector<llama_token> tokens_;
};

}  // namespace

std::unique_ptr<Contender> make_libllama_contender(const ContenderOptions& options,
                                                   const Device& device) {
  return std::make_unique<LibllamaContender>(options, device);
}

}  // namespace forerun
