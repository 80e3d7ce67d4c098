// Which request is answered by what.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "serve/access.h"
#include "serve/engine_thread.h"
#include "serve/http/exchange.h"
#include "serve/model_context.h"
#include "serve/serve_options.h"

namespace forerun {

class App {
 public:
  // Both outlive it.
  App(const ServeOptions& options, EngineThread& engine);

  // The model is there: requests are answered from now on.
  void set_ready();

  // Answers, now or later. On the exchange's strand.
  void handle(const std::shared_ptr<Exchange>& exchange);

 private:
  // Answers at once, or sees to it that somebody does.
  using Now = std::function<HttpResponse(const HttpRequest& request, const ModelContext& model)>;
  using Later =
      std::function<void(const std::shared_ptr<Exchange>& exchange, const ModelContext& model)>;
  struct Route {
    Later answer;
    bool is_work = false;  // a request that has to wait for its turn
  };

  void add(const std::string& method, std::initializer_list<const char*> paths, Now show);
  void add_work(std::initializer_list<const char*> paths, const Later& later);
  void answer(const Route& route, const std::shared_ptr<Exchange>& exchange, const ModelContext& model);
  bool is_full() const;
  std::string methods_of(
      const std::string& path) const;  // "POST, OPTIONS"; empty: there is no such path

  const ServeOptions& options_;
  EngineThread& engine_;
  Access access_;
  std::map<std::pair<std::string, std::string>, Route> routes_;  // by method and path
  std::map<std::string, const ModelContext> models_;  // what each tenant knows of it; "": everybody
  std::atomic<bool> is_ready_ = false;                // they are there
};

}  // namespace forerun
