#include "cost/cost_file.h"

#include <fmt/format.h>

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
constexpr int kVersion = 5;

struct CostFile {
  std::string machine;
  uint64_t n_bytes;
  Calibration costs;
};

std::optional<double> number_at(const Json& json, const char* name) {
  const Json value = json.is_object() ? json.value(name, Json()) : Json();
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::optional<std::vector<CostPoint>> read_points(const Json& list) {
  std::vector<CostPoint> points;
  for (const Json& entry : list.is_array() ? list : Json::array()) {
    if (!entry.is_array() || entry.size() != 3) return std::nullopt;
    for (const Json& number : entry) {
      if (!number.is_number()) return std::nullopt;
    }
    const CostPoint point{.n_rows = entry[0].get<int>(),
                          .seconds = entry[1].get<double>(),
                          .seconds_per_token = entry[2].get<double>()};
    const bool ascending = points.empty() ? point.n_rows > 0 : point.n_rows > points.back().n_rows;
    if (!ascending || !(point.seconds > 0) || !(point.seconds_per_token >= 0)) return std::nullopt;
    points.push_back(point);
  }
  return points.empty() ? std::nullopt : std::optional(std::move(points));
}

std::optional<CostFile> read_file(const std::filesystem::path& path) {
  std::ifstream stream(path);
  const Json json = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("version", Json()) != Json(kVersion)) return std::nullopt;
  auto points = read_points(json.value("points", Json()));
  const Json blocks = json.value("blocks", Json());
  const BlockCosts costs{.attention = number_at(blocks, "attention").value_or(-1),
                         .mlp = number_at(blocks, "mlp").value_or(-1),
                         .rest = number_at(blocks, "rest").value_or(-1)};
  const Json machine = json.value("machine", Json());
  const double n_bytes = number_at(json, "weight_bytes").value_or(0);
  if (!points || costs.attention < 0 || costs.mlp < 0 || costs.rest < 0 || !machine.is_string() ||
      !(n_bytes > 0)) {
    return std::nullopt;
  }
  return CostFile{.machine = machine.get<std::string>(),
                  .n_bytes = static_cast<uint64_t>(n_bytes),
                  .costs = {.curve = CostCurve(std::move(*points)), .blocks = costs}};
}

CostCurve scaled(const CostCurve& curve, double factor) {
  std::vector<CostPoint> points = curve.points();
  for (CostPoint& point : points) {
    point.seconds *= factor;
    point.seconds_per_token *= factor;
  }
  return CostCurve(std::move(points));
}

}  // namespace

CostKey CostKey::of(Executor& executor) {
  const Device& device = executor.model().device();
  StableHash machine;
  machine.add(device.info().name);
  machine.add(device.info().description);
  machine.add(static_cast<uint64_t>(device.n_threads()));
  machine.add(device.kernels() != nullptr ? device.kernels()->name : "");
  machine.add(executor.min_rows());
  machine.add(kVersionText);
  StableHash all = machine;
  all.add(executor.model().fingerprint());
  all.add(ggml_type_name(executor.cache().keys(0)->type));
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
  const auto distance = [&](const CostFile& file) {
    return std::abs(std::log(static_cast<double>(file.n_bytes) / static_cast<double>(key.n_bytes)));
  };
  std::optional<CostFile> nearest;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".json") continue;
    auto file = read_file(entry.path());
    if (!file || file->machine != key.machine) continue;
    if (!nearest || distance(*file) < distance(*nearest)) nearest = std::move(file);
  }
  if (!nearest) return std::nullopt;
  return scaled(nearest->costs.curve,
                static_cast<double>(key.n_bytes) / static_cast<double>(nearest->n_bytes));
}

Calibration calibrated(Executor& executor, const CalibrationOptions& options) {
  const CostKey key = CostKey::of(executor);
  if (auto kept = load_costs(calibration_folder(), key)) return std::move(*kept);
  Calibration calibration = calibrate(executor, options);
  try {
    save_costs(calibration_folder(), key, calibration);
  } catch (const Error&) {
    // A folder that cannot be written costs some time the next time, nothing more.
  }
  return calibration;
}

}  // namespace forerun
