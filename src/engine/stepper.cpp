#include "engine/stepper.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/stopwatch.h"

namespace forerun {
namespace {

// Cells that a request must find beside its text when it begins, and when it goes on after it had to
// wait: more are found as they are needed.
constexpr int kFirstCells = 64;
constexpr int kFurtherCells = 256;

// Cells that the request is going to need soon, beside those it has.
int n_cells_soon(const ActiveRequest& active) {
  return static_cast<int>(active.n_unread()) + std::min(kFirstCells, active.request->n_left());
}

}  // namespace

Stepper::Stepper(Executor& executor, const Vocabulary& vocabulary, const StepperOptions& options,
                 PassCosts* costs)
    : executor_(executor),
      vocabulary_(vocabulary),
      options_(options),
      slots_(executor, options.n_slots, options.n_context),
      drafts_(executor, options.n_context),
      rows_(executor),
      growth_(executor, rows_),
      record_(costs) {
  CHECK(options.n_slots <= executor.max_rows());
  record_.update(active_, executor_.cells());
}

RequestId Stepper::submit(Request request, const Speculation& speculation) {
  if (request.embedding) executor_.model().require_blocks("an embedding");
  auto active = std::make_unique<ActiveRequest>();
  active->request = std::make_unique<RunningRequest>(
      std::move(request), vocabulary_,
      RunningRequest::Limits{.n_vocab = executor_.model().config().n_vocab,
                             .n_context = options_.n_context,
                             .n_trained = executor_.model().config().n_ctx_train});
  active->speculation = speculation;
  return inbox_.submit(std::move(active));
}

void Stepper::discard(RequestId request) {
  take_inbox();
  std::erase_if(active_, [&](const auto& active) {
    if (active->id != request) return false;
    record_.count_past(*active, active->request->result());
    release(*active);
    return true;
  });
  const std::scoped_lock lock(mutex_);
  results_.erase(request);
}

std::optional<RequestResult> Stepper::take(RequestId request) {
  const std::scoped_lock lock(mutex_);
  auto node = results_.extract(request);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

EngineStatistics Stepper::statistics() const {
  EngineStatistics statistics = record_.statistics();
  statistics.n_waiting += inbox_.n_submitted();
  return statistics;
}

int Stepper::n_reading() const {
  const auto n = std::count_if(active_.begin(), active_.end(),
                               [](const auto& active) { return !active->is_decoding(); });
  return static_cast<int>(n) + inbox_.n_submitted();
}

double Stepper::share_read(RequestId request) const {
  for (const auto& active : active_) {
    if (active->id != request || !active->request->answer().empty()) continue;
    const auto n_all = static_cast<double>(active->n_to_read());
    return 1.0 - static_cast<double>(active->n_unread()) / n_all;
  }
  return 1.0;
}

template <typename Work>
void Stepper::for_each_active(const Work& work) {
  for (const auto& active : active_) {
    try {
      work(*active);
    } catch (...) {
      end(*active, std::current_exception());
    }
  }
  std::erase_if(active_, [](const auto& active) { return active->request == nullptr; });
}

StepResult Stepper::step() {
  take_inbox();
  end_cancelled();
  admit();
  record_.update(active_, executor_.cells());  // whoever asks during the pass sees those whom it is for
  const bool has_work = !active_.empty();
  if (has_work) {
    try {
      find_cells();
      const Stopwatch watch;
      draft();
      record_.add_draft_seconds(watch.seconds());
      for (const auto& active : active_) warn_of_failed_drafts(*active);
      fill_pass();
      forward();
    } catch (...) {
      forget_pass();
      throw;
    }
    for_each_active([this](ActiveRequest& active) {
      if (active.n_rows > 0) advance(active);
    });
    record_.count_saved(growth_.n_given());
  }
  record_.update(active_, executor_.cells());
  return {.has_computed = has_work, .finished = std::exchange(finished_, {})};
}

// ---- Requests come and go ----

void Stepper::take_inbox() {
  Inbox::Content content = inbox_.take();
  for (auto& submitted : content.submitted) active_.push_back(std::move(submitted));
  std::ranges::stable_sort(active_, std::greater{},
                           [](const auto& active) { return active->request->priority(); });
  for (const RequestId id : content.cancelled) {
    const auto found = std::ranges::find(active_, id, [](const auto& active) { return active->id; });
    if (found != active_.end()) (*found)->is_cancelled = true;
  }
}

void Stepper::end_cancelled() {
  for_each_active([this](ActiveRequest& active) {
    if (!active.is_cancelled && !active.request->is_cancelled()) return;
    end(active, active.request->finish(StopReason::kCancelled));
  });
}

void Stepper::admit() {
  int n_promised = 0;
  for (const auto& active : active_) {
    if (active->slot != nullptr) n_promised += n_cells_soon(*active);
  }
  bool has_room = true;
  for_each_active([&](ActiveRequest& active) {
    if (active.slot != nullptr || !has_room) return;
    const int n_wanted = active.request->answer().empty() ? kFirstCells : kFurtherCells;
    const int n_own = std::min(n_wanted, active.request->n_left());
    // Alone it gets what there is.
    const int n_more = slots_.n_taken() > 0 ? n_promised + n_own : 0;
    const auto text = active.request->text().first(active.n_to_read());
    active.slot = slots_.acquire(text, {.n_more = n_more, .may_share = active.request->may_reuse()});
    has_room = active.slot != nullptr;
    if (!has_room) return;
    n_promised += n_cells_soon(active);
    admit(active);
  });
}

void Stepper::admit(ActiveRequest& active) {
  const bool is_new = active.request->answer().empty();
  Planner* planner = active.request->max_draft() != 0 ? active.speculation.planner : nullptr;
  active.request->begin({.sequence = active.slot->sequence,
                         .compares_distributions = compares_distributions(active.speculation.accept),
                         .wants_prompt_state = planner != nullptr && planner->wants_prompt_state()});
  if (!is_new) return;
  active.phase = {};
  Timings& timings = active.request->timings();
  timings.n_cached = static_cast<int>(active.slot->text.size());
  timings.n_prompt = static_cast<int>(active.request->prompt().size()) - timings.n_cached;
  active.request->tell_progress(active.slot->text.size(), 0);
  if (planner == nullptr) return;
  active.try_drafting([&] { active.plan = planner->begin(*active.request); });
  warn_of_failed_drafts(active);
  active.request->speculation().draft_ms += active.phase.ms();
}

void Stepper::find_cells() {
  const auto n_decoding = [&] {
    return static_cast<int>(
        std::ranges::count_if(active_, [](const auto& a) { return a->is_decoding(); }));
  };
  while (!slots_.make_room(n_decoding())) suspend_last();
}

void Stepper::suspend_last() {
  const auto last = std::find_if(active_.rbegin(), active_.rend(),
                                 [](const auto& active) { return active->slot != nullptr; });
  CHECK(last != active_.rend());
  ActiveRequest& active = **last;
  if (active.request->answer().empty()) active.plan = nullptr;  // it begins anew
  give_slot_back(active);
  active.n_rows = 0;
  record_.count_suspended();
}

// ---- The pass ----

void Stepper::draft() {
  pass_load_ = {};
  size_t n_unread = 0;
  for (const auto& active : active_) {
    if (active->is_decoding()) ++pass_load_.n_decoding;
    if (active->is_reading()) n_unread += active->n_unread();
  }
  pass_load_.n_prompt_rows =
      static_cast<int>(std::min(n_unread, static_cast<size_t>(max_prompt_rows())));
  // For trees, and for what drafters try out meanwhile; texts that are kept are worth more than the
  // rest.
  const int n_most = executor_.cells().n_cells() / 8;
  const auto n_planned = std::ranges::count_if(active_, [](const auto& a) { return a->is_planned(); });
  slots_.make_room(std::min(n_most, static_cast<int>(n_planned) * 2 * (kLargestTree + 1)));
  drafts_.draft(active_, pass_load_);
}

int Stepper::max_prompt_rows() const {
  const int room = executor_.max_rows() - pass_load_.n_decoding;
  return pass_load_.n_decoding == 0 ? room : record_.n_prompt_rows_within(options_.prompt_seconds, room);
}

void Stepper::fill_pass() {
  rows_.clear();
  for (const auto& active : active_) {
    active->n_rows = 0;
    if (active->is_decoding()) rows_.add_tree(*active);
  }
  add_prompts();
  // Prompts that take each other's cells away are read one after the other.
  while (rows_.size() == 0) {
    suspend_last();
    add_prompts();
  }
}

void Stepper::add_prompts() {
  const auto max_rows = static_cast<size_t>(executor_.max_rows());
  size_t n_left = std::min(static_cast<size_t>(max_prompt_rows()), max_rows - rows_.size());
  for (const auto& active : active_) {
    if (!active->is_reading() || n_left == 0) continue;
    // Parts of a prompt end on a fixed grid of positions, so that it is computed the same
    // way however much of it was there already.
    size_t n = std::min({active->n_unread(), max_rows - active->slot->text.size() % max_rows, n_left});
    if (!slots_.make_room(static_cast<int>(n))) n = static_cast<size_t>(executor_.cells().n_free());
    if (n > 0) rows_.add_unread(*active, n);
    n_left -= n;
  }
}

void Stepper::forward() {
  const Stopwatch watch;
  const PassResult& result = executor_.forward(rows_.pass());
  growth_.begin(result, watch.seconds(), active_);
  observe(watch.seconds());
}

void Stepper::observe(double seconds) {
  StepRecord::ComputedPass pass{.n_rows = static_cast<int>(rows_.size()),
                                .n_decoding = pass_load_.n_decoding,
                                .seconds = seconds,
                                .was_usual = executor_.was_usual()};
  for (const auto& active : active_) {
    if (!active->is_decoding()) continue;
    const int n_text = active->request->n_context();
    pass.n_context += n_text;
    pass.n_longest = std::max(pass.n_longest, n_text);
    pass.n_tree_rows += static_cast<int>(active->n_rows);
  }
  record_.observe(pass);
  if (pass.n_decoding > 0) drafts_.observe(pass.n_rows, pass.n_context);
}

void Stepper::forget_pass() {
  for (const auto& active : active_) {
    if (active->slot != nullptr) executor_.cells().rollback(active->slot->sequence);
  }
}

void Stepper::advance(ActiveRequest& active) {
  auto reason = growth_.grow(active);
  const double told_seconds = growth_.take_draft_seconds();
  drafts_.add_seconds(told_seconds);
  record_.add_draft_seconds(told_seconds);
  warn_of_failed_drafts(active);
  const bool is_full = static_cast<int>(active.slot->text.size()) == options_.n_context;
  if (!reason && is_full) reason = StopReason::kContextFull;
  if (reason) end(active, active.request->finish(*reason));
}

// ---- The end ----

void Stepper::end(ActiveRequest& active, RequestResult result) {
  auto* generation = std::get_if<Generation>(&result);
  if (active.request != nullptr) {
    record_.count_past(active, generation != nullptr ? *generation : active.request->result());
  }
  if (generation != nullptr) {
    Timings& timings = generation->timings;
    if (!active.request->answer().empty()) {
      timings.predicted_ms = active.phase.ms();
    } else if (active.slot != nullptr) {  // ended while the prompt was read
      timings.n_prompt = static_cast<int>(active.slot->text.size()) - timings.n_cached;
      if (active.n_unread() > 0) timings.prompt_ms = active.phase.ms();
    }
    if (generation->stop_reason != StopReason::kCancelled) {
      if (active.plan != nullptr) active.try_drafting([&] { active.plan->finish(); });
      warn_of_failed_drafts(active);
      const auto& on_answer = active.speculation.on_answer;
      if (on_answer && active.request->may_be_stored()) {
        on_answer(active.request->prompt(), active.request->answer());
      }
    }
  }
  release(active);
  finished_.push_back(active.id);
  const std::scoped_lock lock(mutex_);
  results_.emplace(active.id, std::move(result));
}

void Stepper::release(ActiveRequest& active) {
  active.plan = nullptr;  // it sees the request
  give_slot_back(active);
  active.request = nullptr;
}

void Stepper::give_slot_back(ActiveRequest& active) {
  Slot* slot = std::exchange(active.slot, nullptr);
  if (slot == nullptr) return;
  if (active.request->embedding() != nullptr) {
    slots_.drop(*slot);
  } else {
    slots_.release(*slot);
  }
}

void Stepper::warn_of_failed_drafts(ActiveRequest& active) {
  if (active.draft_failure == nullptr) return;
  std::string why = "for an unknown reason";
  try {
    std::rethrow_exception(std::exchange(active.draft_failure, nullptr));
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {
  }
  if (options_.warn)
    options_.warn(fmt::format("a request goes on without drafts, which failed: {}", why));
}

}  // namespace forerun
