// The hyperparameters of attention's heads.
#pragma once

#include <functional>
#include <string>

#include "model/config.h"

namespace forerun {

// Experts, and what heads make of latent numbers, lie one behind the other in matrices of tiles, which
// none of them shares.
constexpr int kMatrixGrain = 16;

// `suffix`: of the keys of sizes, with which files tell layers with a window from others; `of`: which
// layers.
HeadsConfig read_heads(const ConfigReader& reader, int n_embd, const std::string& suffix = "",
                       const std::function<bool(size_t layer)>& of = nullptr);
// Windows, and what else differs in layers that have one.
void read_windowed_kind(const ConfigReader& reader, ModelConfig& config);
// Heads that look at latent numbers, a single key for all of them.
void read_latent(const ConfigReader& reader, ModelConfig& config);

}  // namespace forerun
