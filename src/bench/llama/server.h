// llama.cpp's llama-server, or another that has its flags and paths, as a child process, and requests to
// it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/child_process.h"

namespace forerun {

struct LlamaServerOptions {
  std::string program;                 // a path, or a name in PATH
  std::string command = {};            // before its flags, where it has commands
  std::vector<std::string> arguments;  // all but where it listens
  int wait_s = 300;                    // how long it may take until it is ready
};

// Ready from when it is made; killed with the object. complete() may be called from several
// threads at once, the rest may not.
class LlamaServer {
 public:
  // Throws Error, with the last line that the program printed if it ended.
  explicit LlamaServer(const LlamaServerOptions& options);

  int port() const { return port_; }

  // POST /completion. Throws Error when there is no answer or it is an error.
  nlohmann::json complete(const nlohmann::json& request) const;

 private:
  void await_ready(int wait_s);

  std::string program_;
  int port_;
  ChildProcess process_;
};

// What `program --help`, or another flag that only prints, says. Throws Error.
std::string output_of_llama_server(const std::string& program, const std::string& flag);

}  // namespace forerun
