#include "bench/engine/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/median.h"
#include "core/stopwatch.h"

namespace forerun {
namespace {

constexpr std::array kRowCounts = {1, 2, 3, 4, 6, 8, 16, 32};

struct Contenders {
  Contender& forerun;
  Contender& libllama;
};

// Runs `measure` on both, taking turns; which begins alternates. One round before is
// not counted: it builds graphs and warms caches.
Comparison compare(const Contenders& contenders, int rounds,
                   const std::function<double(Contender&)>& measure) {
  std::vector<double> forerun, libllama;
  for (int round = -1; round < rounds; ++round) {
    double ours = 0, theirs = 0;
    if (round % 2 == 0) ours = measure(contenders.forerun);
    theirs = measure(contenders.libllama);
    if (round % 2 != 0) ours = measure(contenders.forerun);
    if (round < 0) continue;
    forerun.push_back(ours);
    libllama.push_back(theirs);
  }
  return {.forerun = median(forerun), .libllama = median(libllama)};
}

// Milliseconds of `count` reads of `n` tokens each after `context` tokens.
double time_reads(Contender& contender, int context, int n, int count) {
  contender.keep(context);
  const Stopwatch watch;
  for (int i = 0; i < count; ++i) contender.read(n);
  const double elapsed_ms = watch.ms();
  contender.keep(context);
  return elapsed_ms;
}

void fill(Contender& contender, int n) {
  for (; n > 0; n -= kMaxReadTokens) contender.read(std::min(n, kMaxReadTokens));
}

void measure_starts(const EngineBenchOptions& options, EngineBenchResult& result) {
  std::vector<double> our_ms, their_ms, our_bytes, their_bytes;
  for (int i = -1; i < options.starts; ++i) {
    const StartCost ours = measure_start_in_child("forerun", options.contender);
    const StartCost theirs = measure_start_in_child("libllama", options.contender);
    if (i < 0) continue;  // it warmed the page cache
    our_ms.push_back(ours.first_token_ms);
    their_ms.push_back(theirs.first_token_ms);
    our_bytes.push_back(ours.peak_bytes);
    their_bytes.push_back(theirs.peak_bytes);
  }
  result.start_ms = Comparison{.forerun = median(our_ms), .libllama = median(their_ms)};
  result.peak_bytes = Comparison{.forerun = median(our_bytes), .libllama = median(their_bytes)};
}

}  // namespace

EngineBenchResult run_engine_bench(const EngineBenchOptions& options,
                                   const std::function<void(const std::string&)>& note) {
  EngineBenchResult result;
  architecture_of(GgufFile::open(options.contender.model));  // before children fail on it
  if (options.starts > 0) {
    note("starting");
    measure_starts(options, result);
  }

  note("loading both");
  const auto device = Device::open(options.contender.device);
  result.device = device->info().name;
  result.n_threads = device->n_threads();
  const auto model = Model::load(GgufFile::open(options.contender.model), device);
  result.kernels = model->kernels_name();
  const auto forerun = make_forerun_contender(model, options.contender);
  const auto libllama = make_libllama_contender(options.contender, *device);
  const Contenders contenders{*forerun, *libllama};

  note("prefill");
  result.prefill_ms = compare(contenders, options.rounds,
                              [&](Contender& c) { return time_reads(c, 0, options.prompt, 1); });
  for (Contender* contender : {forerun.get(), libllama.get()}) fill(*contender, options.context);
  note("decode");
  result.decode_ms = compare(contenders, options.rounds, [&](Contender& c) {
    return time_reads(c, options.context, 1, options.decode) / options.decode;
  });
  for (const int n : kRowCounts) {
    note(fmt::format("{} tokens at once", n));
    const auto once = [&](Contender& c) { return time_reads(c, options.context, n, 1); };
    result.rows.push_back({.n = n, .ms = compare(contenders, 2 * options.rounds, once)});
  }
  return result;
}

}  // namespace forerun
