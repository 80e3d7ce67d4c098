// Models in several parts: all on the CPU, or on a GPU and the CPU.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "model/model.h"

namespace forerun::test {

// The layers of each part, from the first layer on; the head counts as one more of the last part's. What
// is before them is one more part, and so are all mixtures of experts with `cpu_experts`.
Placement placement_on_cpu(const std::vector<int>& n_layers, int n_before, bool cpu_experts = false);

std::shared_ptr<const Model> load_spread(const std::filesystem::path& path, const Placement& placement,
                                         int n_threads = 1);

// On a GPU, but for the first layer and all mixtures of experts; nullptr: a type of weights that nobody
// multiplies there, or no architecture of ours.
std::shared_ptr<const Model> load_beside_cpu(const std::filesystem::path& path,
                                             const std::shared_ptr<Device>& gpu);

// Some of each kind for a model of so many layers: a cut anywhere, the head alone, several cuts, and,
// where there are mixtures, a cut around each of them.
std::vector<Placement> some_placements(const ModelConfig& config);

}  // namespace forerun::test
