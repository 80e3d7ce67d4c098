#include "cost/known_costs.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/cache_folder.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/replace_file.h"
#include "core/version.h"
#include "cost/guessed_costs.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

// Raised when what is kept, or how it is measured, changes.
constexpr int kVersion = 7;
// What was learnt from fewer is not kept.
constexpr int64_t kEnoughPasses = 100;

struct CostFile {
  std::string machine;
  double n_bytes;
  Calibration costs;
};

bool makes_sense(const std::vector<CostPoint>& points, const BlockCosts& blocks) {
  int n_before = 0;
  for (const CostPoint& point : points) {
    if (point.n_rows <= n_before || !(point.seconds > 0) || !(point.seconds_per_token >= 0))
      return false;
    n_before = point.n_rows;
  }
  return !points.empty() && blocks.attention >= 0 && blocks.mlp >= 0 && blocks.rest >= 0;
}

// nullopt: there is none, or it is damaged.
std::optional<CostFile> read_file(const std::filesystem::path& path) {
  std::ifstream stream(path);
  try {
    const Json json = Json::parse(stream);
    if (json.at("version") != kVersion) return std::nullopt;
    std::vector<CostPoint> points;
    for (const auto& [n_rows, seconds, seconds_per_token] :
         json.at("points").get<std::vector<std::array<double, 3>>>()) {
      points.push_back({static_cast<int>(n_rows), seconds, seconds_per_token});
    }
    const Json& blocks = json.at("blocks");
    const BlockCosts costs{.attention = blocks.at("attention").get<double>(),
                           .mlp = blocks.at("mlp").get<double>(),
                           .rest = blocks.at("rest").get<double>()};
    const auto n_bytes = json.at("weight_bytes").get<double>();
    if (!makes_sense(points, costs) || !(n_bytes > 0)) return std::nullopt;
    return CostFile{.machine = json.at("machine").get<std::string>(),
                    .n_bytes = n_bytes,
                    .costs = {.curve = CostCurve(std::move(points)), .blocks = costs}};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

// A folder that cannot be written costs some time the next time, nothing more.
void save_if_possible(const CostKey& key, const Calibration& costs) {
  try {
    save_costs(calibration_folder(), key, costs);
  } catch (const Error&) {
  }
}

}  // namespace

CostKey CostKey::of(Executor& executor) {
  const Device& device = executor.model().device();
  StableHash machine;
  machine.add(device.info().name);
  machine.add(device.info().description);
  machine.add(static_cast<uint64_t>(device.n_threads()));
  machine.add(executor.model().kernels_name());
  machine.add(executor.min_rows());
  machine.add(kVersionText);
  const std::string placement = executor.model().placement().where();
  if (!placement.empty()) machine.add(placement);
  StableHash all = machine;
  all.add(executor.model().fingerprint());
  all.add(ggml_type_name(ggml_type_of(executor.kv_type())));
  return {.key = fmt::format("{:016x}", all.value()),
          .machine = fmt::format("{:016x}", machine.value()),
          .n_bytes = n_bytes_read(executor.model())};
}

std::filesystem::path calibration_folder() {
  return cache_folder() / "calibration";
}

std::optional<Calibration> load_costs(const std::filesystem::path& folder, const CostKey& key) {
  auto file = read_file(folder / (key.key + ".json"));
  return file ? std::optional(std::move(file->costs)) : std::nullopt;
}

void save_costs(const std::filesystem::path& folder, const CostKey& key, const Calibration& costs) {
  Json points = Json::array();
  for (const CostPoint& point : costs.curve.points()) {
    points.push_back({point.n_rows, point.seconds, point.seconds_per_token});
  }
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const BlockCosts& blocks = costs.blocks;
  const Json json{
      {"version", kVersion},
      {"machine", key.machine},
      {"weight_bytes", key.n_bytes},
      {"points", points},
      {"blocks", {{"attention", blocks.attention}, {"mlp", blocks.mlp}, {"rest", blocks.rest}}}};
  replace_file(folder / (key.key + ".json"), json.dump() + "\n");
}

std::optional<CostCurve> load_similar_curve(const std::filesystem::path& folder, const CostKey& key) {
  const auto n_bytes = static_cast<double>(key.n_bytes);
  const auto distance = [&](const CostFile& file) { return std::abs(std::log(file.n_bytes / n_bytes)); };
  std::optional<CostFile> nearest;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".json") continue;
    auto file = read_file(entry.path());
    if (!file || file->machine != key.machine) continue;
    if (!nearest || distance(*file) < distance(*nearest)) nearest = std::move(file);
  }
  if (!nearest) return std::nullopt;
  std::vector<CostPoint> points = nearest->costs.curve.points();
  for (CostPoint& point : points) {
    point.seconds *= n_bytes / nearest->n_bytes;
    point.seconds_per_token *= n_bytes / nearest->n_bytes;
  }
  return CostCurve(std::move(points));
}

Calibration calibrated(Executor& executor, const std::function<void(double)>& progress) {
  const CostKey key = CostKey::of(executor);
  if (auto kept = load_costs(calibration_folder(), key)) return std::move(*kept);
  Calibration calibration = calibrate(executor, progress);
  save_if_possible(key, calibration);
  return calibration;
}

PassCosts known_costs(Executor& executor) {
  const CostKey key = CostKey::of(executor);
  const auto n_computed = [&executor](int n_rows) { return executor.n_computed(n_rows); };
  if (auto kept = load_costs(calibration_folder(), key)) {
    return PassCosts(std::move(*kept), PassCosts::Known::kMeasured, n_computed);
  }
  Calibration guess = guess_costs(executor);
  if (auto similar = load_similar_curve(calibration_folder(), key)) {
    // Blocks have their part of a pass, whatever that takes.
    guess.blocks = guess.blocks.scaled(similar->rows(1) / guess.curve.rows(1));
    guess.curve = std::move(*similar);
  }
  const bool are_ours = !executor.model().kernels_name().empty();
  return PassCosts(std::move(guess),
                   are_ours ? PassCosts::Known::kGuessed : PassCosts::Known::kGuessedRowByRow,
                   n_computed);
}

void keep_costs(Executor& executor, const PassCosts& costs) {
  if (costs.n_seen() >= kEnoughPasses) save_if_possible(CostKey::of(executor), costs.learnt());
}

}  // namespace forerun
