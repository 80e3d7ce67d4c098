// Passes computed by libllama, for models that we have no architecture of our own for.
//
// Nothing but tokens goes in and nothing but logits comes out: no layers can be left out, no states
// seen. A row's bits may depend on what else is in its pass.
#pragma once

#include <llama.h>

#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "model/executor_options.h"
#include "model/llama/llama_texts.h"
#include "model/llama/llama_threads.h"
#include "model/model.h"
#include "model/pass_runner.h"

namespace forerun {

class LlamaPasses final : public PassRunner {
 public:
  // Throws Error{kOutOfMemory}.
  LlamaPasses(std::shared_ptr<const Model> model, const ExecutorOptions& options);

  KvCells& cells() override { return cells_; }
  void run(const Pass& pass, PassResult& result) override;
  PassLimits limits() const override { return limits_; }
  int n_until_next_span(int) const override { return std::numeric_limits<int>::max(); }
  bool was_usual() const override { return was_usual_; }
  void save(SequenceId sequence, std::span<const TokenId> tokens,
            const std::filesystem::path& path) const override;
  std::optional<RestoredText> restore(const std::filesystem::path& path) override;

 private:
  class Memory final : public SequenceMemory {
   public:
    explicit Memory(llama_context* context) : memory_(llama_get_memory(context)) {}
    bool truncate(int sequence, int position) override;
    void clear(int sequence) override;
    void copy(int from, int to, int first, int end) override;

   private:
    llama_memory_t memory_;
  };
  // A path that a pass computes the end of.
  struct Leaf {
    SequenceId sequence;
    std::vector<Written> path;  // from the beginning of the text on
    bool is_first;              // of its sequence in the pass
  };
  // A token of a batch, and the sequences of libllama's that it is of.
  struct Token {
    Written written;
    llama_pos position;
    std::vector<llama_seq_id> sequences;
  };
  struct Free {
    void operator()(llama_context* context) const { llama_free(context); }
  };

  void write_cells(const Pass& pass);
  std::vector<Leaf> leaves_of(const Pass& pass);
  std::vector<Written> path_to(const Row& row);
  // Computes as many of the leaves as there are sequences for; returns how many.
  size_t compute(std::span<const Leaf> leaves, PassResult& result);
  void decode(std::span<const Token> tokens, PassResult& result);
  bool is_draft(const Leaf& leaf, int n_there) const;
  void forget_what_ended();

  std::shared_ptr<const Model> model_;
  PassLimits limits_;
  KvCells cells_;
  LlamaThreads threads_;  // the context uses them
  std::unique_ptr<llama_context, Free> context_;
  Memory memory_;
  LlamaTexts texts_;
  // By cell: its last write, the token, and the row of the pass that wants its logits, or -1.
  std::vector<uint64_t> writes_;
  std::vector<TokenId> tokens_;
  std::vector<int32_t> asking_;
  uint64_t n_writes_ = 0;
  // Tokens and logits of batches so far: for new ones ggml asks RPC servers several times how much
  // memory they take.
  std::set<std::pair<size_t, size_t>> shapes_;
  bool is_far_ = false;
  bool was_usual_ = true;
  std::vector<float> logits_;
};

}  // namespace forerun
