#include "support/libllama.h"

#include <algorithm>

#include "core/check.h"
#include "core/error.h"
#include "gguf/ggml_log.h"

namespace forerun::test {

LibLlama::LibLlama(const std::filesystem::path& path, const Options& options) : options_(options) {
  silence_ggml_log();
  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = 0;
  model_.reset(llama_model_load_from_file(path.c_str(), model_params));
  if (!model_) fail(ErrorCode::kInvalidFile, "libllama does not load {}", path.string());
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(options.n_ctx);
  params.n_batch = static_cast<uint32_t>(options.max_rows);
  params.n_ubatch = static_cast<uint32_t>(options.max_rows);
  params.embeddings = options.embeds;
  if (options.embeds) params.pooling_type = LLAMA_POOLING_TYPE_NONE;
  params.n_threads = options.n_threads;
  params.n_threads_batch = options.n_threads;
  context_.reset(llama_init_from_model(model_.get(), params));
  if (!context_) fail(ErrorCode::kOutOfMemory, "libllama does not start {}", path.string());
}

std::vector<float> LibLlama::read(std::span<const TokenId> tokens, size_t n_logits) {
  std::vector<float> logits;
  llama_batch batch = llama_batch_init(options_.max_rows, 0, 1);
  for (size_t at = 0; at < tokens.size();) {
    const size_t n = std::min(tokens.size() - at, static_cast<size_t>(options_.max_rows));
    batch.n_tokens = static_cast<int32_t>(n);
    for (size_t i = 0; i < n; ++i) {
      batch.token[i] = to_int(tokens[at + i]);
      batch.pos[i] = n_read_++;
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = at + i + n_logits >= tokens.size() ? 1 : 0;
    }
    CHECK(llama_decode(context_.get(), batch) == 0);
    for (size_t i = 0; i < n; ++i) {
      if (batch.logits[i] == 0) continue;
      const float* row = llama_get_logits_ith(context_.get(), static_cast<int32_t>(i));
      logits.insert(logits.end(), row, row + n_vocab());
    }
    at += n;
  }
  llama_batch_free(batch);
  return logits;
}

std::vector<float> LibLlama::embed(std::span<const TokenId> tokens) {
  CHECK(options_.embeds && static_cast<int>(tokens.size()) <= options_.max_rows);
  forget();
  std::vector<llama_token> ids;
  for (const TokenId token : tokens) ids.push_back(to_int(token));
  CHECK(llama_decode(context_.get(),
                     llama_batch_get_one(ids.data(), static_cast<int32_t>(ids.size()))) == 0);
  std::vector<float> vectors;
  const int n_embd = llama_model_n_embd(model_.get());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const float* row = llama_get_embeddings_ith(context_.get(), static_cast<int32_t>(i));
    CHECK(row != nullptr);
    vectors.insert(vectors.end(), row, row + n_embd);
  }
  return vectors;
}

void LibLlama::forget() {
  llama_memory_clear(llama_get_memory(context_.get()), true);
  n_read_ = 0;
}

size_t LibLlama::n_vocab() const {
  return static_cast<size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model_.get())));
}

bool LibLlama::is_end(TokenId token) const {
  return llama_vocab_is_eog(llama_model_get_vocab(model_.get()), to_int(token));
}

std::vector<TokenId> LibLlama::tokenize(const std::string& text, bool special) const {
  std::vector<llama_token> ids(text.size() + 8);
  const int32_t n =
      llama_tokenize(llama_model_get_vocab(model_.get()), text.data(), static_cast<int32_t>(text.size()),
                     ids.data(), static_cast<int32_t>(ids.size()), true, special);
  CHECK(n >= 0);
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < n; ++i) tokens.push_back(TokenId{ids[static_cast<size_t>(i)]});
  return tokens;
}

std::string LibLlama::chat_prompt(const std::string& message) const {
  const char* chat_template = llama_model_chat_template(model_.get(), nullptr);
  if (chat_template == nullptr) return message;
  const llama_chat_message chat{.role = "user", .content = message.c_str()};
  std::vector<char> text(message.size() * 2 + 4096);
  const int32_t n = llama_chat_apply_template(chat_template, &chat, 1, true, text.data(),
                                              static_cast<int32_t>(text.size()));
  CHECK(n >= 0 && static_cast<size_t>(n) <= text.size());
  return {text.data(), static_cast<size_t>(n)};
}

}  // namespace forerun::test
