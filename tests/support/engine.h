// Short ways to run forerun's model layer in tests.
#pragma once

#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "core/ids.h"
#include "model/executor.h"
#include "model/model.h"

namespace forerun::test {

// On the CPU. Threads are not pinned, and one by default: tests share the machine with
// others, and threads that wait for each other at every operation of a tiny model then
// mostly wait.
std::shared_ptr<const Model> load_model(const std::filesystem::path& path, int n_threads = 1);

// On a GPU where our own kernels compute it; nullptr: there is none, or they do not.
std::shared_ptr<const Model> load_model_on_gpu(const std::filesystem::path& path);

// An executor with room for a few hundred tokens.
std::unique_ptr<Executor> make_executor(std::shared_ptr<const Model> model, KvType type = KvType::kF16,
                                        int n_cells = 512, int max_rows = 128);

// Reads tokens behind the committed text of `sequence` in one pass over `layers`,
// commits them and returns the logits behind each, one after the other.
std::vector<float> read_and_commit(Executor& executor, SequenceId sequence,
                                   std::span<const TokenId> tokens,
                                   const std::optional<LayerSet>& layers = std::nullopt);

// Random tokens, the same for the same seed. Only ids that even the smallest
// vocabulary has.
std::vector<TokenId> random_tokens(const Model& model, size_t n, uint32_t seed);

// A random set that leaves out about a third of the blocks, and at least one.
LayerSet random_layer_set(int n_layers, std::mt19937& random);

// The largest difference between two rows of numbers; NaN in either is infinity.
double max_difference(std::span<const float> a, std::span<const float> b);

}  // namespace forerun::test
