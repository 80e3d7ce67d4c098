#include "serve/metrics.h"

#include <fmt/format.h>

#include <iterator>
#include <string>

namespace forerun {
namespace {

// Prometheus' text format.
class MetricsText {
 public:
  void counter(std::string_view name, std::string_view help, double value) {
    add(name, help, "counter", value);
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    add(name, help, "gauge", value);
  }
  // One value of several that a label tells apart.
  void begin(std::string_view name, std::string_view help, std::string_view type) {
    fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void value(std::string_view name, std::string_view label, std::string_view of, double value) {
    fmt::format_to(std::back_inserter(text_), "{}{{{}=\"{}\"}} {}\n", name, label, of, value);
  }
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram) {
    begin(name, help, "histogram");
    const auto counts = histogram.cumulated();
    for (size_t i = 0; i < counts.size(); ++i) {
      const bool is_last = i == Histogram::kBounds.size();
      value(fmt::format("{}_bucket", name), "le",
            is_last ? "+Inf" : fmt::format("{}", Histogram::kBounds[i]), static_cast<double>(counts[i]));
    }
    fmt::format_to(std::back_inserter(text_), "{}_sum {}\n{}_count {}\n", name, histogram.sum(), name,
                   counts.back());
  }
  std::string take() { return std::move(text_); }

 private:
  void add(std::string_view name, std::string_view help, std::string_view type, double value) {
    begin(name, help, type);
    fmt::format_to(std::back_inserter(text_), "{} {}\n", name, value);
  }
  std::string text_;
};

double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

// Under the names that dashboards for llama-server have.
void add_llama(MetricsText& text, const EngineStatistics& s) {
  const auto n = [](int64_t value) { return static_cast<double>(value); };
  text.counter("llamacpp:prompt_tokens_total", "Number of prompt tokens processed.",
               n(s.n_prompt_tokens));
  text.counter("llamacpp:prompt_tokens_cached_total", "Number of prompt tokens reused from the cache.",
               n(s.n_cached_tokens));
  text.counter("llamacpp:prompt_seconds_total", "Prompt process time", s.prompt_seconds);
  text.counter("llamacpp:tokens_predicted_total", "Number of generation tokens processed.",
               n(s.n_predicted_tokens));
  text.counter("llamacpp:tokens_predicted_seconds_total", "Predict process time", s.predicted_seconds);
  text.counter("llamacpp:n_tokens_max", "Largest observed n_tokens.", s.n_longest);
  text.counter("llamacpp:n_decode_total", "Total number of llama_decode() calls", n(s.n_passes));
  text.gauge("llamacpp:n_busy_slots_per_decode", "Average number of busy slots per llama_decode() call",
             ratio(n(s.n_decoding), n(s.n_passes)));
  text.gauge("llamacpp:prompt_tokens_seconds", "Average prompt throughput in tokens/s.",
             ratio(n(s.n_prompt_tokens), s.prompt_seconds));
  text.gauge("llamacpp:predicted_tokens_seconds", "Average generation throughput in tokens/s.",
             ratio(n(s.n_predicted_tokens), s.predicted_seconds));
  text.gauge("llamacpp:requests_processing", "Number of requests processing.", s.n_running);
  text.gauge("llamacpp:requests_deferred", "Number of requests deferred.", s.n_waiting);
  const DraftCounts drafts = s.speculation.total();
  text.counter("llamacpp:spec_decode_num_drafts_total", "Number of passes that could verify drafts.",
               n(s.speculation.n_steps));
  text.counter("llamacpp:spec_decode_num_draft_tokens_total", "Number of drafted tokens.",
               n(drafts.n_drafted));
  text.counter("llamacpp:spec_decode_num_accepted_tokens_total",
               "Number of drafted tokens that were accepted.", n(drafts.n_accepted));
  text.begin("llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
             "The same by their place in the draft.", "counter");
  for (size_t i = 0; i < s.speculation.by_depth.size(); ++i) {
    text.value("llamacpp:spec_decode_num_accepted_tokens_per_pos_total", "position", std::to_string(i),
               n(s.speculation.by_depth[i].n_accepted));
  }
}

void add_forerun(MetricsText& text, const EngineStatistics& s) {
  const auto n = [](int64_t value) { return static_cast<double>(value); };
  text.begin("forerun:drafted_tokens_total", "Tokens that were drafted, by where they were found.",
             "counter");
  for (int i = 0; i < kDraftSources; ++i) {
    text.value("forerun:drafted_tokens_total", "source", to_string(static_cast<DraftSource>(i)),
               n(s.speculation.by_source[static_cast<size_t>(i)].n_drafted));
  }
  text.begin("forerun:accepted_tokens_total", "Of these, what the model said too.", "counter");
  for (int i = 0; i < kDraftSources; ++i) {
    text.value("forerun:accepted_tokens_total", "source", to_string(static_cast<DraftSource>(i)),
               n(s.speculation.by_source[static_cast<size_t>(i)].n_accepted));
  }
  text.gauge(
      "forerun:saved_seconds",
      "By how much drafts shortened the passes, by what plain ones cost; falls where they did not pay.",
      s.saved_seconds);
  text.gauge("forerun:cells", "Tokens that the cache has room for.", s.n_cells);
  text.gauge("forerun:cells_used", "Of these, those that are used or kept.", s.n_cells_used);
  text.counter("forerun:rows_total", "Rows of all passes.", n(s.n_rows));
  text.counter("forerun:requests_suspended_total", "Requests that had to wait for cells again.",
               n(s.n_suspended));
}

}  // namespace

HttpResponse show_metrics(const ModelContext& model) {
  MetricsText text;
  const EngineStatistics statistics = model.engine.engine()->statistics();
  add_llama(text, statistics);
  add_forerun(text, statistics);
  const Latencies& latencies = model.engine.latencies();
  text.histogram("forerun:queue_seconds", "How long requests waited for their turn.", latencies.queue());
  text.histogram("forerun:first_token_seconds", "How long requests waited for their first text.",
                 latencies.first_token());
  text.histogram("forerun:inter_token_seconds", "How long they waited for each further token.",
                 latencies.inter_token());
  return {.body = text.take(),
          .content_type = "text/plain; version=0.0.4",
          .headers = {{"Process-Start-Time-Unix", std::to_string(model.created)}}};
}

}  // namespace forerun
