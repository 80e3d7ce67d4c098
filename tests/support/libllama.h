// libllama, the reference that forerun's results are compared with.
#pragma once

#include <llama.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"

namespace forerun::test {

// One model with one sequence, on the CPU. Not thread-safe.
class LibLlama {
 public:
  struct Options {
    int n_ctx = 1024;
    int n_threads = 1;
    int max_rows = 512;
    bool embeds = false;  // embed() instead of read()
  };
  LibLlama(const std::filesystem::path& path, const Options& options);
  explicit LibLlama(const std::filesystem::path& path) : LibLlama(path, Options{}) {}

  // Reads tokens behind what was read before, max_rows at a time, and returns the
  // logits behind the last `n_logits` of them, one after the other.
  std::vector<float> read(std::span<const TokenId> tokens, size_t n_logits);
  // The vectors of all tokens of a text, at most max_rows, one after the other.
  std::vector<float> embed(std::span<const TokenId> tokens);
  void forget();  // starts a new text

  size_t n_vocab() const;
  bool is_end(TokenId token) const;
  std::vector<TokenId> tokenize(const std::string& text, bool special) const;
  // The model's chat template around one user message; the text itself if it has none.
  std::string chat_prompt(const std::string& message) const;

 private:
  struct Deleter {
    void operator()(llama_model* model) const { llama_model_free(model); }
    void operator()(llama_context* context) const { llama_free(context); }
  };
  Options options_;
  std::unique_ptr<llama_model, Deleter> model_;
  std::unique_ptr<llama_context, Deleter> context_;
  int n_read_ = 0;
};

}  // namespace forerun::test
