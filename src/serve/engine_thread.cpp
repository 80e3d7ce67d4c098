#include "serve/engine_thread.h"

#include <forerun/drafting_methods.h>

#include <chrono>
#include <future>
#include <utility>

namespace forerun {
namespace {

using namespace std::chrono_literals;

// How long it waits for something to do before it looks again, and before it tries a pass again that
// the device could not compute.
constexpr auto kIdle = 1s;
constexpr auto kPause = 100ms;
// Passes that fail one after the other end the requests.
constexpr int kMostFailures = 3;

}  // namespace

void EngineThread::start(const EngineOptions& options, const std::vector<Tenant>& tenants,
                         std::function<void(std::exception_ptr)> on_ready) {
  own_[""] = options.speculation;
  for (const Tenant& tenant : tenants) {
    SpeculationOptions& own = own_[tenant.name] = options.speculation;
    own.datastores.insert(own.datastores.end(), tenant.datastores.begin(), tenant.datastores.end());
    own.live_datastore = tenant.live_datastore;
  }
  n_parallel_ = options.n_parallel;
  thread_ = std::jthread([this, options, on_ready = std::move(on_ready)] { run(options, on_ready); });
}

void EngineThread::stop() {
  is_ending_ = true;
  if (Engine* running = engine()) running->wake();
  if (thread_.joinable()) thread_.join();
}

RequestId EngineThread::submit(Request request, OnFinished on_finished) {
  latencies_.watch(request);
  // Not locked: reading a long grammar must not keep the engine.
  const RequestId id = engine()->submit(std::move(request));
  std::unique_lock lock(mutex_);
  auto early = early_.extract(id);
  if (early.empty()) {
    callbacks_.emplace(id, std::move(on_finished));
    return id;
  }
  lock.unlock();
  on_finished(std::move(early.mapped()));
  return id;
}

void EngineThread::post(std::function<void(Engine&)> work) {
  {
    const std::scoped_lock lock(mutex_);
    posted_.push_back(std::move(work));
  }
  engine()->wake();
}

SpeculationId EngineThread::speculation(const std::string& tenant,
                                        const std::optional<std::string>& method) {
  SpeculationOptions options = own_.at(tenant);
  const std::string name = method.value_or(options.method);
  if (name == options.method) return own_ids_.at(tenant);
  drafting_method(name);  // there is one
  const std::scoped_lock lock(speculations_mutex_);
  const auto known = speculations_.find({tenant, name});
  if (known != speculations_.end()) return known->second;
  options.method = name;
  options.tree = {};
  options.options = {};
  // It is open for writing already.
  if (!options.live_datastore.empty())
    options.datastores.push_back(std::exchange(options.live_datastore, {}));
  std::promise<SpeculationId> made;
  post([&](Engine& engine) {
    try {
      made.set_value(engine.add_speculation(options));
    } catch (...) {
      made.set_exception(std::current_exception());
    }
  });
  const SpeculationId id = made.get_future().get();
  speculations_.emplace(std::pair(tenant, name), id);
  return id;
}

std::unique_ptr<Engine> EngineThread::load(const EngineOptions& options) {
  auto engine = std::make_unique<Engine>(options);
  for (const auto& [tenant, own] : own_) {
    own_ids_[tenant] = tenant.empty() ? SpeculationId{0} : engine->add_speculation(own);
  }
  return engine;
}

void EngineThread::run(const EngineOptions& options,
                       const std::function<void(std::exception_ptr)>& on_ready) {
  std::unique_ptr<Engine> engine;
  try {
    engine = load(options);
  } catch (...) {
    return on_ready(std::current_exception());
  }
  engine_ = engine.get();
  on_ready(nullptr);
  int n_failures = 0;
  while (!is_ending_) {
    do_posted(*engine);
    try {
      const StepResult result = engine->step();
      n_failures = 0;
      for (const RequestId id : result.finished) finish(*engine, id);
      if (!result) engine->wait(kIdle);
    } catch (...) {
      // The device failed. Somebody else's memory may be free in a moment.
      if (++n_failures < kMostFailures) {
        std::this_thread::sleep_for(kPause);
        continue;
      }
      const std::scoped_lock lock(mutex_);
      for (auto& [id, callback] : callbacks_) {
        engine->cancel(id);
        callback(std::current_exception());
        callback = [](const Result&) {};
      }
    }
  }
  engine_ = nullptr;
}

void EngineThread::finish(Engine& engine, RequestId request) {
  Result result;
  try {
    result = engine.take(request).value();
  } catch (...) {
    result = std::current_exception();
  }
  OnFinished callback;
  {
    const std::scoped_lock lock(mutex_);
    auto node = callbacks_.extract(request);
    if (node.empty()) {
      early_.emplace(request, std::move(result));
      return;
    }
    callback = std::move(node.mapped());
  }
  callback(std::move(result));
}

void EngineThread::do_posted(Engine& engine) {
  std::vector<std::function<void(Engine&)>> posted;
  {
    const std::scoped_lock lock(mutex_);
    posted = std::exchange(posted_, {});
  }
  for (const auto& work : posted) work(engine);
}

}  // namespace forerun
