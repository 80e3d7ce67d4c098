// An engine in a benchmark: ours or libllama's, driven the same way.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "engine/loaded_model.h"
#include "model/executor.h"

namespace forerun {

struct ContenderOptions {
  std::filesystem::path model;
  DeviceOptions device;
  int n_context = 1024;
};

constexpr int kMaxReadTokens = 512;

// Holds one sequence. Tokens are made up: the cost of a pass does not depend on them.
class Contender {
 public:
  virtual ~Contender() = default;

  // Reads `n` tokens, at most kMaxReadTokens, after the context and keeps them. Logits of
  // the last are computed.
  virtual void read(int n) = 0;
  // Forgets all but the first `n` tokens.
  virtual void keep(int n) = 0;
};

std::unique_ptr<Contender> make_forerun_contender(std::shared_ptr<const Model> model,
                                                  const ContenderOptions& options);
// Computes on the device's CPUs with threads of its own. They rest once keep() was called:
// until then they would look for work on CPUs that the other engine needs.
std::unique_ptr<Contender> make_libllama_contender(const ContenderOptions& options,
                                                   const Device& device);

// The token a contender reads at a position.
constexpr int made_up_token(int position, int n_vocab) {
  return static_cast<int>((static_cast<int64_t>(position) * 7919 + 101) %
                          (n_vocab < 30000 ? n_vocab : 30000));
}

}  // namespace forerun
