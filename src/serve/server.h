// `forerun serve`: a model for many, over HTTP.
#pragma once

#include <functional>
#include <memory>

#include "serve/serve_options.h"

namespace forerun {

class Server {
 public:
  // Listens from now on, and says that the model is being loaded until it is. Throws Error.
  explicit Server(ServeOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;

  // Serves until SIGINT or SIGTERM: answers that have begun are finished then, or cut off by a second
  // one. `on_ready` is called when the model is there. Throws what went wrong with loading it.
  void run(const std::function<void()>& on_ready);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forerun
