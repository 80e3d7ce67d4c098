// A set of layers for a model as a file, for tests that draft with one.
#pragma once

#include <filesystem>

#include "layers/layer_file.h"
#include "layers/layer_selector.h"
#include "model/model.h"

namespace forerun::test {

inline void write_layers(const Model& model, double skipped_share, const std::filesystem::path& path) {
  LayerFile file{.model = model.fingerprint(),
                 .layers = uniform_layers(model.config().n_layers, skipped_share),
                 .found = {}};
  file.save(path);
}

}  // namespace forerun::test
