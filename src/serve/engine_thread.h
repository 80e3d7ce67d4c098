// An engine on a thread of its own, for a server.
//
// The model is loaded there too, so that a server can say that it is being loaded. All functions may
// be called from any thread; callbacks run on the engine's thread and must not keep it.
#pragma once

#include <forerun/engine.h>

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "serve/latencies.h"
#include "serve/tenants.h"

namespace forerun {

class EngineThread {
 public:
  using Result = std::variant<Generation, std::exception_ptr>;
  using OnFinished = std::function<void(Result result)>;

  ~EngineThread() { stop(); }

  // Loads the model; `on_ready` is called when it is there, with nullptr, or with what went wrong.
  void start(const EngineOptions& options, const std::vector<Tenant>& tenants,
             std::function<void(std::exception_ptr)> on_ready);
  // Ends what runs. No callback is called any more then.
  void stop();

  // nullptr: it is being loaded, or that failed, or it has ended.
  Engine* engine() { return engine_.load(); }

  // Requests that are answered at once.
  int n_parallel() const { return n_parallel_; }

  // The engine is there. Throws Error where the request makes no sense; `on_finished` is called once
  // otherwise.
  RequestId submit(Request request, OnFinished on_finished);
  void cancel(RequestId request) {
    if (Engine* running = engine()) running->cancel(request);
  }

  // Between two steps.
  void post(std::function<void(Engine&)> work);

  // How to speculate for a tenant ("": everybody), by another method than the engine's own where one is
  // named; made when that is first asked for. Throws Error where there is no such method.
  SpeculationId speculation(const std::string& tenant, const std::optional<std::string>& method);

  const Latencies& latencies() const { return latencies_; }

 private:
  void run(const EngineOptions& options, const std::function<void(std::exception_ptr)>& on_ready);
  std::unique_ptr<Engine> load(const EngineOptions& options);
  void finish(Engine& engine, RequestId request);
  void do_posted(Engine& engine);

  std::atomic<bool> is_ending_ = false;
  std::atomic<Engine*> engine_ = nullptr;
  std::mutex mutex_;
  std::map<RequestId, OnFinished> callbacks_;
  std::map<RequestId, Result> early_;  // of requests that were over before they had their callback
  std::vector<std::function<void(Engine&)>> posted_;
  Latencies latencies_;
  int n_parallel_ = 1;
  std::map<std::string, SpeculationOptions> own_;  // of each tenant
  std::map<std::string, SpeculationId> own_ids_;   // the same, once the model is loaded
  std::mutex speculations_mutex_;                  // those who wait for one to be made
  std::map<std::pair<std::string, std::string>, SpeculationId> speculations_;  // by tenant and method
  std::jthread thread_;
};

}  // namespace forerun
