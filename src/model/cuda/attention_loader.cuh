// What the chunk kernel of attention works on, and how it gets into shared memory.
//
// Work is cut into units: an item, a KV head, and, where an item has more queries than a block takes at
// a time, a share of them. A block takes every gridDim-th unit. Keys and values of chunks stream through
// a ring of stages, one stage for the keys or the values of a chunk, and go on streaming from one unit
// into the next; all threads copy and arrive at the stage's barrier.
#pragma once

#include "model/cuda/attention_cells.cuh"
#include "model/cuda/attention_softmax.cuh"

namespace forerun::cuda {

constexpr int kMostStages = 6;
// A unit as it is computed.
struct Unit {
  int row, kv_head;  // of the first query of the item
  int first_query, n_queries;
  int first_chunk, end_chunk;
};

// What a query's row sees.
struct SeenByQuery {
  int first, end;
  int partial_start;
  int unused;
};

// The units of which something has been loaded, kUnitsAhead at a time with the one being computed, and
// the barriers of the stages.
template <int kDim, int kTiles, int kAhead>
struct LoadedUnits {
  static constexpr int kQueries = kTiles * 16, kUnitsAhead = kAhead;
  uint4 q[kUnitsAhead][kQueries * QueryTile<kDim>::kStride];
  SeenByQuery seen[kUnitsAhead][kQueries];
  Unit units[kUnitsAhead];
  uint64_t ready[kMostStages];
  int item_chunks;
};

// How a launch goes about it.
struct AttendPlan {
  Scores scores;
  int heads_per_kv;
  int n_shares;  // of an item's queries
  int n_stages;
};

// Where what is computed of a unit's query goes.
template <typename Cells>
__device__ __forceinline__ float* partial_of(const AttentionWork& work, const AttendPlan& plan,
                                             const Unit& unit, const SeenByQuery& seen, int query,
                                             int item_chunks) {
  const int item = unit.first_chunk / item_chunks - seen.first / kChunk / item_chunks;
  const int head = unit.kv_head * plan.heads_per_kv + (unit.first_query + query) % plan.heads_per_kv;
  return work.partials + (static_cast<int64_t>(seen.partial_start + item) * work.shape.n_heads + head) *
                             (Cells::kDim + 2);
}

// Walks through the block's units and their chunks: keys of a chunk, its values, keys of the next. The
// same in all threads but for `cell_`.
template <typename Cells, typename Shared>
class Loader {
  static constexpr int kDim = Cells::kDim, kUnits = kDim / 8;

 public:
  __device__ __forceinline__ Loader(const AttentionWork& work, const AttendPlan& plan, uint4* ring,
                                    Shared& shared)
      : work_(work),
        plan_(plan),
        shared_(shared),
        ring_(ring),
        next_unit_(static_cast<int>(blockIdx.x)) {
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < plan.n_stages) ptx::barrier_init(&shared.ready[thread], kAttendThreads);
    ptx::launch_dependents();
    // What is to be done is an input of the pass: no kernel writes it.
    if (thread == 0) shared.item_chunks = __ldcg(work.item_chunks);
    // The first item is asked for before it is known whether there is one.
    fetch_item(min(item_of(next_unit_), max(work.most_items, 1) - 1));
    n_units_ = __ldcg(work.n_items) * work.shape.n_kv_heads * plan.n_shares;
    if (!next_has_queries()) find_next();
    enter_next();
  }

  // Loads as many stages as there is room for, once the kernel before this one has ended. Then a unit is
  // there, if there is one.
  __device__ __forceinline__ void begin() {
    prefetch();
    __syncthreads();
    ptx::wait_dependencies();
    load_until(plan_.n_stages, 0);
    __syncthreads();
  }

  // Whether the unit of this number (0, 1, ... within the block) exists; those before it do.
  __device__ __forceinline__ bool has(int ordinal) const {
    return ordinal < ordinal_ || (ordinal == ordinal_ && unit_ < n_units_);
  }

  // Loads stages up to the n-th as far as there are any, while unit `ordinal` is being computed.
  __device__ __forceinline__ void load_until(int n, int ordinal) {
    while (issued_ < n && unit_ < n_units_ && ordinal_ - ordinal < Shared::kUnitsAhead) load_stage();
  }

 private:
  // Asks for the first keys and values. The cells of this pass may not be written yet, which L2 does not
  // mind.
  __device__ __forceinline__ void prefetch() const {
    if (unit_ >= n_units_ || cell_ < 0) return;
    const CacheRows& cache = threadIdx.x % 32 < 16 ? work_.keys : work_.values;
    constexpr int kBytes = Cells::kHeadBytes, kLine = 128;
    const std::byte* head = cache.data + cell_ * cache.row_bytes + kv_head_ * kBytes;
#pragma unroll
    for (int offset = 0; offset < kBytes + kLine - 1; offset += kLine) {
      ptx::prefetch(head + min(offset, kBytes - 1));
    }
  }

  __device__ __forceinline__ int first_query(int unit) const {
    return unit % plan_.n_shares * Shared::kQueries;
  }

  __device__ __forceinline__ int item_of(int unit) const {
    return unit / (plan_.n_shares * work_.shape.n_kv_heads);
  }

  __device__ __forceinline__ void fetch_item(int item) {
    const auto* halves = reinterpret_cast<const int4*>(work_.items + item);
    next_item_ = __ldcg(halves);
    next_seen_ = __ldcg(halves + 1);
  }
  __device__ __forceinline__ bool next_has_queries() const {
    return plan_.n_shares == 1 || first_query(next_unit_) < next_item_.y * plan_.heads_per_kv;
  }
  // The first unit after next_unit_ that has queries.
  __device__ __forceinline__ void find_next() {
    do {
      next_unit_ += static_cast<int>(gridDim.x);
      if (next_unit_ >= n_units_) return;
      fetch_item(item_of(next_unit_));
    } while (!next_has_queries());
  }
  __device__ __forceinline__ void enter_next() {
    ++ordinal_;
    unit_ = next_unit_;
    kv_head_ = unit_ / plan_.n_shares % work_.shape.n_kv_heads;
    item_ = next_item_;
    shared_cells_ = next_seen_.x;
    n_shared_ = next_seen_.z;
    own_cells_ = next_seen_.y - n_shared_;
    end_ = next_seen_.w;
    chunk_ = item_.z;
    if (unit_ < n_units_) fetch_cell();
  }
  // The cell of slot 16 * warp + lane % 16, or -1.
  __device__ __forceinline__ void fetch_cell() {
    const int position = chunk_ * kChunk + static_cast<int>(threadIdx.x) / 32 * 16 + threadIdx.x % 16;
    const int list = position < n_shared_ ? shared_cells_ : own_cells_;
    cell_ = position < end_ ? __ldcg(work_.cells + list + position) : -1;
  }

  // What is loaded with a unit's first keys.
  __device__ __forceinline__ void load_queries() {
    const int buffer = ordinal_ % Shared::kUnitsAhead;
    const int first = first_query(unit_), kv = kv_head_, per_row = plan_.heads_per_kv;
    const int n = min(item_.y * per_row - first, Shared::kQueries);
    if (threadIdx.x == 0) {
      shared_.units[buffer] = {.row = item_.x,
                               .kv_head = kv,
                               .first_query = first,
                               .n_queries = n,
                               .first_chunk = item_.z,
                               .end_chunk = item_.w};
    }
    for (int i = static_cast<int>(threadIdx.x); i < Shared::kQueries * kUnits; i += kAttendThreads) {
      const int query = i / kUnits, unit = i % kUnits;
      const bool valid = query < n;
      const int row = valid ? item_.x + (first + query) / per_row : 0;
      const int head = valid ? kv * per_row + (first + query) % per_row : 0;
      const __half* from = work_.q + (static_cast<int64_t>(row) * work_.shape.n_heads + head) * kDim;
      ptx::copy_16(shared_.q[buffer] + QueryTile<kDim>::at(query, unit), from + unit * 8, valid);
    }
    if (threadIdx.x < Shared::kQueries) {
      const int query = static_cast<int>(threadIdx.x);
      const bool valid = query < n;
      const int row = valid ? item_.x + (first + query) / per_row : 0;
      SeenByQuery& to = shared_.seen[buffer][query];
      ptx::copy_4(&to.first, &work_.rows[row].first, valid);
      ptx::copy_4(&to.end, &work_.rows[row].end, valid);
      ptx::copy_4(&to.partial_start, work_.partial_start + row, valid);
    }
  }

  __device__ __forceinline__ void load_stage() {
    const bool opens = chunk_ == item_.z;
    if (!values_ && opens) load_queries();
    Cells::copy(ring_ + slot_ * Cells::kStageUnits, values_ ? work_.values : work_.keys, kv_head_,
                cell_);
    ptx::barrier_arrive_after_copies(&shared_.ready[slot_]);
    ++issued_;
    if (++slot_ == plan_.n_stages) slot_ = 0;
    if (!values_ && opens) find_next();  // asked for early
    if (values_) {
      if (++chunk_ < item_.w) {
        fetch_cell();
      } else {
        enter_next();
      }
    }
    values_ = !values_;
  }

  const AttentionWork& work_;
  const AttendPlan& plan_;
  Shared& shared_;
  uint4* ring_;
  int n_units_ = 0;
  int issued_ = 0, slot_ = 0;
  int ordinal_ = -1, unit_ = 0, kv_head_ = 0, chunk_ = 0;
  bool values_ = false;
  int4 item_{};  // row, n_rows, first_chunk, end_chunk
  // Of the item's last row; own cells begin at own_cells_ + n_shared_.
  int shared_cells_ = 0, own_cells_ = 0, n_shared_ = 0, end_ = 0;
  int cell_ = -1;
  int next_unit_;
  int4 next_item_{}, next_seen_{};  // an AttentionItem
};
static_assert(sizeof(AttentionItem) == 2 * sizeof(int4));

// The ring as it is computed from: stage after stage, each when it is there.
class StagesInOrder {
 public:
  __device__ __forceinline__ StagesInOrder(const uint4* ring, uint64_t* ready, int stage_units,
                                           int n_stages)
      : ring_(ring), ready_(ready), stage_units_(stage_units), n_stages_(n_stages) {}

  __device__ __forceinline__ const uint4* next() {
    const uint4* stage = ring_ + slot_ * stage_units_;
    ptx::barrier_wait(&ready_[slot_], static_cast<uint32_t>(parity_));
    ++taken_;
    if (++slot_ == n_stages_) {
      slot_ = 0;
      parity_ ^= 1;
    }
    return stage;
  }
  // How many stages may have been asked for once all threads are done with those taken.
  __device__ __forceinline__ int most_issued() const { return taken_ + n_stages_; }

 private:
  const uint4* ring_;
  uint64_t* ready_;
  int stage_units_, n_stages_;
  int slot_ = 0, parity_ = 0, taken_ = 0;
};

}  // namespace forerun::cuda
