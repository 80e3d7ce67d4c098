#include <llama-cpp.h>
#include <llama.h>

#include <memory>
#include <vector>

#include "bench/engine/contender.h"
#include "core/error.h"
#include "gguf/ggml_log.h"
#include "model/llama/llama_model.h"
#include "model/llama/llama_threads.h"

namespace forerun {
namespace {

class LibllamaContender final : public Contender {
 public:
  LibllamaContender(const ContenderOptions& options, const Device& device)
      : model_(GgufFile::open(options.model), device, {}, {}) {
    GgmlLogCapture log;
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<uint32_t>(options.n_context);
    params.n_batch = params.n_ubatch = kMaxReadTokens;
    params.n_threads = params.n_threads_batch = device.n_threads();
    params.swa_full = false;  // as its own programs do
    params.no_perf = true;
    params.type_k = params.type_v = ggml_type_of(options.device.kv_type);
    context_.reset(llama_init_from_model(model_.raw(), params));
    if (!context_)
      fail(ErrorCode::kOutOfMemory, "libllama cannot make a context: {}", log.first_error());
    if (model_.uses_cpu()) threads_ = give_threads(context_.get(), device);
    n_vocab_ = llama_vocab_n_tokens(llama_model_get_vocab(model_.raw()));
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
  LlamaThreads threads_;  // the context uses them
  LlamaModel model_;
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
