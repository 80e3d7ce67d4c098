#include "model/layer_plan.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace forerun {
namespace {

// Gives things in a row to devices, so that each has about its share of their weight: to the device in
// whose share a thing's middle lies. Returns how many each gets.
std::vector<int> divide(std::span<const double> things, std::span<const double> shares) {
  const double all_things = std::reduce(things.begin(), things.end());
  const double all_shares = std::reduce(shares.begin(), shares.end());
  CHECK(all_shares > 0);
  std::vector<int> counts(shares.size());
  // What has no weight, as a head that is only counted, stays with what is before it.
  size_t last = shares.size() - 1;
  while (shares[last] <= 0) --last;
  size_t device = 0;
  double end = shares[0] / all_shares;
  double before = 0;
  for (const double thing : things) {
    const double middle = all_things > 0 ? (before + thing / 2) / all_things : 0;
    while (device < last && middle >= end) end += shares[++device] / all_shares;
    ++counts[device];
    before += thing;
  }
  return counts;
}

class Planner {
 public:
  Planner(const PartSizes& sizes, std::span<const size_t> free_bytes)
      : sizes_(sizes), free_bytes_(free_bytes), n_layers_(static_cast<int>(sizes.layers.size())) {}

  // The last `n` layers and the head, by free memory.
  std::vector<int> by_memory(int n) const {
    std::vector<double> things, shares;
    for (int i = n_layers_ - n; i < n_layers_; ++i)
      things.push_back(static_cast<double>(layer_bytes(i)));
    things.push_back(static_cast<double>(sizes_.head));
    for (const size_t n_bytes : free_bytes_) shares.push_back(static_cast<double>(n_bytes) + 1);
    return divide(things, shares);
  }

  std::vector<int> by_shares(int n, std::span<const double> shares) const {
    std::vector<double> things(static_cast<size_t>(n), 1.0);
    things.push_back(0.0);
    return divide(things, shares);
  }

  bool fits(const std::vector<int>& counts) const {
    int next = n_layers_ + 1 - std::reduce(counts.begin(), counts.end());
    for (size_t d = 0; d < counts.size(); ++d) {
      size_t n_bytes = counts[d] > 0 ? sizes_.passes : 0;
      for (const int end = next + counts[d]; next < end; ++next) {
        n_bytes += next < n_layers_ ? layer_bytes(next) : sizes_.head;
      }
      if (n_bytes > free_bytes_[d]) return false;
    }
    return true;
  }

  // Whether the first device has room for everything, and one text.
  bool fits_first() const {
    size_t n_bytes = sizes_.passes + sizes_.head;
    for (const size_t layer : sizes_.layers) n_bytes += layer + sizes_.least_cache;
    return n_bytes <= free_bytes_[0];
  }

 private:
  size_t layer_bytes(int layer) const {
    return sizes_.layers[static_cast<size_t>(layer)] + sizes_.cache;
  }

  const PartSizes& sizes_;
  std::span<const size_t> free_bytes_;
  int n_layers_;
};

std::vector<int> device_counts(const PartSizes& sizes, const LayerChoice& choice,
                               std::span<const size_t> free_bytes) {
  const Planner planner(sizes, free_bytes);
  const auto n_layers = static_cast<int>(sizes.layers.size());
  std::vector<int> none(free_bytes.size());
  if (free_bytes.empty()) return none;
  const auto divided = [&](int n) {
    return choice.split.empty() ? planner.by_memory(n) : planner.by_shares(n, choice.split);
  };
  if (choice.n_gpu_layers) {
    const int n = std::min(*choice.n_gpu_layers, n_layers);
    return n > 0 ? divided(n) : none;
  }
  if (choice.prefers_first && choice.split.empty() && planner.fits_first()) {
    std::vector<int> first = none;
    first[0] = n_layers + 1;
    return first;
  }
  for (int n = n_layers; n > 0; --n) {
    std::vector<int> counts = divided(n);
    if (planner.fits(counts)) return counts;
  }
  return none;
}

}  // namespace

LayerPlan plan_layers(const PartSizes& sizes, const LayerChoice& choice,
                      std::span<const size_t> free_bytes, size_t host_bytes) {
  LayerPlan plan{.on_device = device_counts(sizes, choice, free_bytes)};
  const int n_there = std::reduce(plan.on_device.begin(), plan.on_device.end());
  const auto n_layers = static_cast<int>(sizes.layers.size());
  plan.n_on_cpu = n_there > 0 ? n_layers + 1 - n_there : n_layers;
  size_t n_bytes = sizes.stays + (n_there > 0 ? 0 : sizes.head);
  for (int i = 0; i < plan.n_on_cpu; ++i)
    n_bytes += sizes.layers[static_cast<size_t>(i)] + sizes.least_cache;
  plan.exceeds_memory = n_bytes > host_bytes;
  return plan;
}

}  // namespace forerun
