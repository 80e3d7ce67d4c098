// A file of domains for a model, for tests that draft with one.
#pragma once

#include <filesystem>

#include "layers/domain_file.h"
#include "layers/layer_selector.h"
#include "model/model.h"

namespace forerun::test {

// Shares of the blocks that the two domains leave out.
constexpr double kDomainSkips[] = {0.05, 0.25};

// Two domains with layers of their own, and every prompt belongs to one of them.
inline void write_domains(const Model& model, const std::filesystem::path& path) {
  DomainFile file{.model = model.fingerprint(),
                  .n_layers = model.config().n_layers,
                  .n_embd = model.config().n_embd};
  for (const int sign : {1, -1}) {
    Domain& domain = file.domains.emplace_back();
    domain.name = sign > 0 ? "one" : "other";
    domain.layers = uniform_layers(file.n_layers, kDomainSkips[sign > 0 ? 0 : 1]);
    domain.anchors.assign(static_cast<size_t>(file.n_embd), 0);
    domain.anchors[0] = static_cast<float>(sign);
  }
  file.save(path);
}

}  // namespace forerun::test
