#include "bench/serve/bench.h"

#include <algorithm>
#include <memory>

#include "core/median.h"

namespace forerun {
namespace {

// So many of them, from the beginning again where they do not suffice.
std::vector<std::string> taken(const std::vector<std::string>& bodies, size_t first, size_t n) {
  std::vector<std::string> result;
  for (size_t i = 0; i < n; ++i) result.push_back(bodies[(first + i) % bodies.size()]);
  return result;
}

int n_other_texts(const LoadResult& a, const LoadResult& b) {
  int n = 0;
  for (size_t i = 0; i < a.answers.size(); ++i) n += a.answers[i].text != b.answers[i].text ? 1 : 0;
  return n;
}

ServeBenchRow row_of(const std::string& name, int n_streams, const std::vector<LoadResult>& rounds,
                     const std::vector<LoadResult>& first) {
  const auto of_rounds = [&](auto value) {
    std::vector<double> values;
    for (const LoadResult& round : rounds) values.push_back(value(round));
    return median(std::move(values));
  };
  ServeBenchRow row{.name = name, .n_streams = n_streams};
  row.tokens_per_second = of_rounds([](const LoadResult& r) { return r.tokens_per_second(); });
  row.first_p50 = of_rounds([](const LoadResult& r) { return r.first_s(0.5); });
  row.first_p99 = of_rounds([](const LoadResult& r) { return r.first_s(0.99); });
  row.gap_p50 = of_rounds([](const LoadResult& r) { return r.gap_s(0.5); });
  row.gap_p99 = of_rounds([](const LoadResult& r) { return r.gap_s(0.99); });
  std::vector<double> ratios;
  for (size_t i = 0; i < rounds.size(); ++i) {
    ratios.push_back(rounds[i].tokens_per_second() / first[i].tokens_per_second());
    row.n_failed += rounds[i].n_failed;
    row.n_other_texts += n_other_texts(rounds[i], first[i]);
  }
  row.ratio = median(std::move(ratios));
  return row;
}

}  // namespace

std::vector<ServeBenchRow> bench_serve(const ServeBenchOptions& options) {
  std::vector<std::unique_ptr<LlamaServer>> servers;
  for (const ServeContender& contender : options.contenders) {
    servers.push_back(std::make_unique<LlamaServer>(contender.server));
  }
  const std::vector<int> levels = options.rate > 0 ? std::vector<int>{0} : options.streams;
  const int n_all = static_cast<int>(levels.size() * servers.size()) * options.n_rounds;
  int n_done = 0;
  size_t n_taken = 0;
  std::vector<ServeBenchRow> rows;
  for (const int level : levels) {
    const auto n = static_cast<size_t>(std::max(1, level) * options.n_requests);
    std::vector<std::vector<LoadResult>> results(servers.size());
    for (int round = 0; round < options.n_rounds; ++round) {
      LoadOptions load{
          .bodies = taken(options.bodies, n_taken, n), .n_streams = level, .rate = options.rate};
      n_taken += n;
      for (size_t i = 0; i < servers.size(); ++i) {
        load.port = servers[i]->port();
        results[i].push_back(run_load(load));
        if (options.progress) options.progress(++n_done, n_all);
      }
    }
    for (size_t i = 0; i < servers.size(); ++i) {
      rows.push_back(row_of(options.contenders[i].name, level, results[i], results.front()));
    }
  }
  return rows;
}

nlohmann::ordered_json serve_bench_json(const std::vector<ServeBenchRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ServeBenchRow& row : rows) {
    list.push_back({{"server", row.name},
                    {"streams", row.n_streams},
                    {"tokens_per_second", row.tokens_per_second},
                    {"ratio", row.ratio},
                    {"first_text_p50_ms", 1e3 * row.first_p50},
                    {"first_text_p99_ms", 1e3 * row.first_p99},
                    {"between_texts_p50_ms", 1e3 * row.gap_p50},
                    {"between_texts_p99_ms", 1e3 * row.gap_p99},
                    {"failed", row.n_failed},
                    {"other_texts", row.n_other_texts}});
  }
  return list;
}

}  // namespace forerun
