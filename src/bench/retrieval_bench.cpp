#include "bench/retrieval_bench.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "bench/peak_memory.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "retrieval/continuation_search.h"
#include "retrieval/store/datastore.h"

namespace forerun {
namespace {

constexpr int kVocabulary = 49'152;
constexpr int kDocument = 500;       // tokens
constexpr int kSentence = 20;        // tokens
constexpr int kDraft = 6;            // tokens behind a match
constexpr int kAnswer = 300;         // tokens that are added at once
constexpr int kStepsPerAnswer = 10;  // more than any server ends at once
constexpr double kStepMs = 5;

class TextSource {
 public:
  TextSource() {
    for (auto& sentence : sentences_) {
      for (TokenId& token : sentence) token = word();
    }
  }

  void append(size_t n, std::vector<TokenId>& text) {
    for (const size_t end = text.size() + n; text.size() < end;) {
      const bool is_known = random_() % 4 == 0;
      const auto& sentence = sentences_[random_() % sentences_.size()];
      const size_t length = std::min<size_t>(kSentence, end - text.size());
      for (size_t i = 0; i < length; ++i) text.push_back(is_known ? sentence[i] : word());
    }
  }
  size_t number() { return random_(); }

 private:
  TokenId word() {
    // Ranks by Zipf's law: the logarithm of a rank is spread evenly.
    const double rank =
        std::exp(std::uniform_real_distribution<double>(0, std::log(kVocabulary))(random_));
    return TokenId{std::min(static_cast<int32_t>(rank), kVocabulary) - 1};
  }

  std::mt19937 random_{1};
  std::vector<std::array<TokenId, kSentence>> sentences_{20'000};
};

Percentiles percentiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {.median = at(0.5), .p99 = at(0.99)};
}

// Threads that compute for a while when told to, as those of a model do.
class BusyThreads {
 public:
  explicit BusyThreads(int n) {
    for (int i = 1; i < n; ++i) threads_.emplace_back([this] { serve(); });
    // How much work a step takes.
    for (n_rounds_ = 1'000'000;; n_rounds_ = 2 * n_rounds_) {
      const Stopwatch watch;
      work();
      if (watch.ms() < kStepMs / 2) continue;
      n_rounds_ = static_cast<int64_t>(static_cast<double>(n_rounds_) * kStepMs / watch.ms());
      return;
    }
  }
  ~BusyThreads() {
    is_over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;

  void step() {
    n_done_ = 0;
    ++n_begun_;
    work();
    while (n_done_ < static_cast<int>(threads_.size())) {
    }
  }

 private:
  void serve() {
    for (int n_seen = 0; !is_over_;) {
      if (n_begun_ == n_seen) continue;
      ++n_seen;
      work();
      ++n_done_;
    }
  }
  void work() const {
    volatile double x = 1;
    double y = x;
    for (int64_t i = 0; i < n_rounds_; ++i) y = y * 1.0000001 + 1e-9;
    x = y;
  }

  std::atomic<int64_t> n_rounds_{0};
  std::atomic<int> n_begun_{0}, n_done_{0};
  std::atomic<bool> is_over_{false};
  std::vector<std::thread> threads_;
};

class RetrievalBench {
 public:
  RetrievalBench(const RetrievalBenchOptions& options,
                 const std::function<void(std::string_view)>& progress)
      : options_(options), progress_(progress) {}

  RetrievalBenchResult run() {
    build();
    search();
    fold();
    return result_;
  }

 private:
  std::unique_ptr<Datastore> open(bool background) const {
    return Datastore::open(options_.folder, Datastore::Mode::kCreate,
                           {.identity = Segment::Identity{.tokenizer = 1, .n_vocab = kVocabulary},
                            .fold_tokens = 20'000,
                            .max_segment_tokens = options_.n_tokens,
                            .background = background});
  }

  void build() {
    const auto store = open(false);
    const auto per_segment = static_cast<size_t>(options_.n_tokens / options_.n_segments);
    double seconds = 0;
    int64_t peak = 0;
    for (int i = 0; i < options_.n_segments; ++i) {
      say("building");
      std::vector<TokenId> text;
      text.reserve(per_segment + kDocument + 1);
      while (text.size() < per_segment) {
        source_.append(kDocument, text);
        text.push_back(Segment::kSeparator);
      }
      // What a query will look for, later.
      for (size_t at = kSentence; at < text.size(); at += per_segment / 2'000 + 1) {
        known_.emplace_back(text.begin() + static_cast<std::ptrdiff_t>(at - kSentence),
                            text.begin() + static_cast<std::ptrdiff_t>(at));
      }
      const int64_t before = peak_bytes();
      const Stopwatch watch;
      store->add_text(std::move(text), {}, {.n_threads = options_.n_threads});
      seconds += watch.seconds();
      peak = std::max(peak, peak_bytes() - before);
    }
    const StoreInfo info = store->info();
    result_.tokens_per_second = static_cast<double>(info.n_tokens) / seconds;
    result_.bytes_per_token = static_cast<double>(info.n_bytes) / static_cast<double>(info.n_tokens);
    result_.peak_bytes_per_token = static_cast<double>(peak) / static_cast<double>(per_segment);
  }

  // A text to continue: one that is there, or one that may be.
  std::vector<TokenId> query() {
    if (source_.number() % 2 == 0) return known_[source_.number() % known_.size()];
    std::vector<TokenId> text;
    source_.append(kSentence, text);
    return text;
  }

  double time_search(const Datastore& store, const std::vector<TokenId>& text) {
    const Stopwatch watch;
    const auto snapshot = store.snapshot();
    segments_.clear();
    for (const auto& segment : *snapshot) segments_.push_back(segment.get());
    search_.search(segments_, text, kDraft);
    return 1e3 * watch.ms();
  }

  void search() {
    say("searching");
    const auto store = open(false);
    for (int i = 0; i < options_.n_queries / 4; ++i) time_search(*store, query());  // warm
    std::vector<double> times;
    for (int i = 0; i < options_.n_queries; ++i) times.push_back(time_search(*store, query()));
    result_.search_us = percentiles(std::move(times));
  }

  void fold() {
    BusyThreads threads(options_.n_threads);
    const auto steps = [&](Datastore& store, bool adds) {
      std::vector<double> times;
      for (int i = 0; i < options_.n_steps; ++i) {
        const auto text = query();
        std::vector<TokenId> answer;
        if (adds && i % kStepsPerAnswer == 0) source_.append(kAnswer, answer);
        const Stopwatch watch;
        time_search(store, text);
        threads.step();
        if (!answer.empty()) store.add(answer);
        times.push_back(1e3 * watch.ms());
      }
      return percentiles(std::move(times));
    };
    say("searching while nothing is folded");
    result_.step_us = steps(*open(false), false);
    say("searching while text is folded");
    const auto store = open(true);
    result_.folding_step_us = steps(*store, true);
    const StoreInfo info = store->info();
    // Every document has an end, which counts.
    const int64_t n_answers = (options_.n_steps + kStepsPerAnswer - 1) / kStepsPerAnswer;
    result_.n_folded = n_answers * (kAnswer + 1) - info.n_live_tokens;
  }

  void say(std::string_view what) const {
    if (progress_) progress_(what);
  }

  const RetrievalBenchOptions& options_;
  const std::function<void(std::string_view)>& progress_;
  TextSource source_;
  std::vector<std::vector<TokenId>> known_;
  ContinuationSearch search_{{}};
  std::vector<const Segment*> segments_;
  RetrievalBenchResult result_;
};

}  // namespace

RetrievalBenchResult run_retrieval_bench(const RetrievalBenchOptions& options,
                                         const std::function<void(std::string_view)>& progress) {
  std::error_code ignored;
  if (std::filesystem::exists(options.folder, ignored)) {
    fail(ErrorCode::kInvalidArgument, "{} is there already: name a folder that is not",
         options.folder.string());
  }
  struct Removed {
    const std::filesystem::path& folder;
    ~Removed() {
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
    }
  } removed{options.folder};
  return RetrievalBench(options, progress).run();
}

}  // namespace forerun
