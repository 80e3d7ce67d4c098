#include "retrieval/suffix_order.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.h"

namespace forerun {
namespace {

constexpr int64_t kPrefetchAhead = 16;
// Runs up to this size are sorted by comparing texts, longer ones by keys.
constexpr uint32_t kSmallRun = 16;
// A text below this size is one bucket.
constexpr int64_t kMinBucketedText = 1 << 16;

// A place and the tokens that stand there from some depth on.
struct Entry {
  uint64_t key;
  uint32_t place;

  friend bool operator<(const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key < b.key : a.place > b.place;
  }
};

// Entries [begin, end) of a bucket that are equal so far.
struct Run {
  uint32_t begin;
  uint32_t end;
};

struct Workspace {
  std::vector<Entry> entries;
  std::vector<Run> runs;
  std::vector<Run> next_runs;
  std::vector<Run> small_runs;

  explicit Workspace(size_t n_entries) {
    entries.reserve(n_entries);
    runs.reserve(n_entries / kSmallRun + 1);
    next_runs.reserve(n_entries / kSmallRun + 1);
    small_runs.reserve(n_entries / 2 + 1);
  }
};

template <typename Token>
class OrderBuilder {
 public:
  OrderBuilder(const SuffixOrderTask& task, const Token* text, std::span<uint32_t> order)
      : task_(task),
        text_(text),
        size_(task.text.size()),
        order_(order),
        format_(task.n_vocab, task.depth),
        n_threads_(static_cast<int>(std::clamp<int64_t>(size_ / kMinBucketedText, 1, task.n_threads))),
        max_group_(static_cast<size_t>(std::clamp<int64_t>(size_ / (8 * n_threads_), 4096, 1 << 20))) {}

  bool run() {
    if (size_ < kMinBucketedText) {
      fill_one_bucket();
      Workspace workspace(order_.size());
      sort_group(order_, 0, workspace);
      return report(1.0);
    }
    scatter();
    if (!report(0.1)) return false;
    // All memory is had before any thread needs it.
    const size_t largest = std::min<size_t>(buckets_.empty() ? 0 : buckets_[0].size(), max_group_);
    std::vector<Workspace> workspaces;
    for (int i = 0; i < n_threads_; ++i) workspaces.emplace_back(largest);
    {
      std::vector<std::jthread> threads;
      for (size_t i = 1; i < workspaces.size(); ++i) {
        threads.emplace_back([this, &workspace = workspaces[i]] { sort_buckets(workspace, false); });
      }
      sort_buckets(workspaces[0], true);
    }
    return !given_up_ && report(1.0);
  }

 private:
  struct Bucket {
    uint32_t begin;
    uint32_t end;
    uint32_t size() const { return end - begin; }
  };

  bool report(double share) {
    if (task_.progress && !task_.progress(std::min(share, 1.0))) given_up_ = true;
    return !given_up_;
  }

  void fill_one_bucket() {
    size_t next = 0;
    for (int64_t place = size_ - 1; place >= 0; --place) {
      if (SegmentText::value_of(text_[place]) != 0) order_[next++] = static_cast<uint32_t>(place);
    }
    CHECK(next == order_.size());
  }

  // Calls work(part, begin, end) for one part of the text per thread.
  template <typename Work>
  void in_parts(Work work) {
    std::vector<std::jthread> threads;
    for (int part = 0; part < n_threads_; ++part) {
      const int64_t begin = size_ * part / n_threads_;
      const int64_t end = size_ * (part + 1) / n_threads_;
      if (part + 1 == n_threads_) {
        work(part, begin, end);
      } else {
        threads.emplace_back([=] { work(part, begin, end); });
      }
    }
  }

  // Puts the places into buckets by their first token, the latest first.
  void scatter() {
    const size_t n_values = static_cast<size_t>(task_.n_vocab) + 1;
    std::vector<std::vector<uint32_t>> next(static_cast<size_t>(n_threads_),
                                            std::vector<uint32_t>(n_values, 0));
    in_parts([&](int part, int64_t begin, int64_t end) {
      std::vector<uint32_t>& counts = next[static_cast<size_t>(part)];
      for (int64_t place = begin; place < end; ++place) ++counts[SegmentText::value_of(text_[place])];
    });
    uint32_t total = 0;
    for (size_t value = 1; value < n_values; ++value) {
      const uint32_t begin = total;
      for (int part = n_threads_ - 1; part >= 0; --part) {
        total += std::exchange(next[static_cast<size_t>(part)][value], total);
      }
      if (total - begin > 1) buckets_.push_back({begin, total});
    }
    CHECK(total == order_.size());
    in_parts([&](int part, int64_t begin, int64_t end) {
      std::vector<uint32_t>& position = next[static_cast<size_t>(part)];
      for (int64_t place = end - 1; place >= begin; --place) {
        const uint32_t value = SegmentText::value_of(text_[place]);
        if (value != 0) order_[position[value]++] = static_cast<uint32_t>(place);
      }
    });
    // The largest first, so that no thread is left alone with one at the end.
    std::sort(buckets_.begin(), buckets_.end(), [](const Bucket& a, const Bucket& b) {
      return a.size() != b.size() ? a.size() > b.size() : a.begin < b.begin;
    });
  }

  void sort_buckets(Workspace& workspace, bool reports) {
    uint32_t reported = 0;
    while (!given_up_) {
      const size_t i = next_bucket_++;
      if (i >= buckets_.size()) return;
      const Bucket& bucket = buckets_[i];
      sort_group(order_.subspan(bucket.begin, bucket.size()), 1, workspace);
      const uint32_t done = n_sorted_ += bucket.size();
      if (reports && done - reported > order_.size() / 256) {
        reported = done;
        report(std::min(1.0, 0.1 + 0.9 * done / static_cast<double>(order_.size())));
      }
    }
  }

  // Sorts places that are equal to `depth`.
  void sort_group(std::span<uint32_t> places, int depth, Workspace& workspace) {
    if (depth >= task_.depth) return sort_equal(places);
    if (places.size() > max_group_) return partition_group(places, depth, workspace);
    std::vector<Entry>& entries = workspace.entries;
    entries.resize(places.size());
    for (size_t i = 0; i < places.size(); ++i) entries[i].place = places[i];
    workspace.runs.assign(1, {0, static_cast<uint32_t>(places.size())});
    for (; depth < task_.depth && !workspace.runs.empty(); depth += format_.n_tokens()) {
      fetch_keys(depth, workspace);
      workspace.next_runs.clear();
      workspace.small_runs.clear();
      for (const Run& run : workspace.runs) sort_run(run, workspace);
      sort_small_runs(depth + format_.n_tokens(), workspace);
      std::swap(workspace.runs, workspace.next_runs);
    }
    for (size_t i = 0; i < places.size(); ++i) places[i] = entries[i].place;
  }

  uint64_t key(uint32_t place, int depth) const {
    return format_.key(text_, int64_t{place} + depth, std::min(format_.n_tokens(), task_.depth - depth));
  }

  // All runs in one go, because most are short and memory is far away.
  void fetch_keys(int depth, Workspace& workspace) const {
    std::vector<Entry>& entries = workspace.entries;
    const size_t n = entries.size();
    for (const Run& run : workspace.runs) {
      for (size_t i = run.begin; i < run.end; ++i) {
        const size_t ahead = i + kPrefetchAhead;
        if (ahead < n) __builtin_prefetch(text_ + entries[ahead].place + depth);
        entries[i].key = key(entries[i].place, depth);
      }
    }
  }

  void sort_run(const Run& run, Workspace& workspace) const {
    const auto begin = workspace.entries.begin() + run.begin;
    const auto end = workspace.entries.begin() + run.end;
    if (!std::is_sorted(begin, end)) std::sort(begin, end);
    for (auto first = begin; first != end;) {
      auto last = first + 1;
      while (last != end && last->key == first->key) ++last;
      const auto size = static_cast<uint32_t>(last - first);
      if (size > 1 && !format_.ended(first->key)) {
        const auto start = static_cast<uint32_t>(first - workspace.entries.begin());
        (size <= kSmallRun ? workspace.small_runs : workspace.next_runs)
            .push_back({start, start + size});
      }
      first = last;
    }
  }

  // Sorts runs that are equal to `depth`, and latest first, by what comes after it.
  void sort_small_runs(int depth, Workspace& workspace) const {
    constexpr size_t kRunsAhead = 4;
    const std::vector<Run>& runs = workspace.small_runs;
    for (size_t i = 0; i < runs.size(); ++i) {
      if (i + kRunsAhead < runs.size()) {
        const Run& ahead = runs[i + kRunsAhead];
        for (uint32_t j = ahead.begin; j < ahead.end; ++j) {
          __builtin_prefetch(text_ + workspace.entries[j].place + depth);
          __builtin_prefetch(text_ + workspace.entries[j].place + task_.depth - 1);
        }
      }
      // By insertion, so that equal texts stay in their order.
      for (uint32_t j = runs[i].begin + 1; j < runs[i].end; ++j) {
        const Entry entry = workspace.entries[j];
        uint32_t hole = j;
        while (hole > runs[i].begin && before(entry.place, workspace.entries[hole - 1].place, depth)) {
          workspace.entries[hole] = workspace.entries[hole - 1];
          --hole;
        }
        workspace.entries[hole] = entry;
      }
    }
  }

  // Whether the text at a comes before that at b, which is equal to `depth`.
  bool before(uint32_t a, uint32_t b, int depth) const {
    for (; depth < task_.depth; ++depth) {
      const uint32_t value_a = SegmentText::value_of(text_[a + depth]);
      const uint32_t value_b = SegmentText::value_of(text_[b + depth]);
      if (value_a != value_b) return value_a < value_b;
      if (value_a == 0) return false;
    }
    return false;
  }

  // Splits places that are too many to sort at once: those with smaller, equal and larger
  // keys than one of them.
  void partition_group(std::span<uint32_t> places, int depth, Workspace& workspace) {
    if (given_up_) return;
    const uint64_t pivot = middle_key(places, depth);
    size_t below = 0;
    size_t next = 0;
    size_t above = places.size();
    while (next < above) {
      if (next + kPrefetchAhead < above) {
        __builtin_prefetch(text_ + places[next + kPrefetchAhead] + depth);
        __builtin_prefetch(text_ + places[above - kPrefetchAhead] + depth);
      }
      const uint64_t current = key(places[next], depth);
      if (current < pivot) {
        std::swap(places[below++], places[next++]);
      } else if (current > pivot) {
        std::swap(places[next], places[--above]);
      } else {
        ++next;
      }
    }
    sort_group(places.first(below), depth, workspace);
    sort_group(places.subspan(above), depth, workspace);
    const auto equal = places.subspan(below, above - below);
    if (format_.ended(pivot)) {
      sort_equal(equal);
    } else {
      sort_group(equal, depth + format_.n_tokens(), workspace);
    }
  }

  uint64_t middle_key(std::span<const uint32_t> places, int depth) const {
    constexpr size_t kSamples = 33;
    std::array<uint64_t, kSamples> keys;
    for (size_t i = 0; i < kSamples; ++i) {
      keys[i] = key(places[places.size() / kSamples * i], depth);
    }
    std::nth_element(keys.begin(), keys.begin() + kSamples / 2, keys.end());
    return keys[kSamples / 2];
  }

  static void sort_equal(std::span<uint32_t> places) {
    if (!std::is_sorted(places.begin(), places.end(), std::greater<>())) {
      std::sort(places.begin(), places.end(), std::greater<>());
    }
  }

  const SuffixOrderTask& task_;
  const Token* text_;
  int64_t size_;
  std::span<uint32_t> order_;
  KeyFormat format_;
  int n_threads_;
  size_t max_group_;  // entries that are sorted in a workspace

  std::vector<Bucket> buckets_;
  std::atomic<size_t> next_bucket_{0};
  std::atomic<uint32_t> n_sorted_{0};
  std::atomic<bool> given_up_{false};
};

}  // namespace

bool make_suffix_order(const SuffixOrderTask& task, std::span<uint32_t> order) {
  CHECK(task.text.size() <= int64_t{UINT32_MAX});
  return task.text.visit([&](const auto* text) { return OrderBuilder(task, text, order).run(); });
}

}  // namespace forerun
