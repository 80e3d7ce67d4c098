// llama.cpp's RPC servers that compute layers for us, on this machine or others.
//
// A server has one client at a time and keeps no weights when that one goes, so what was lost stays
// lost: the model has to be loaded again.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "model/device.h"

namespace forerun {

// Throws Error{kInvalidArgument} unless it is "host:port".
void check_rpc_endpoint(const std::string& endpoint);

class RpcServers {
 public:
  // Throws Error{kIo}, which names the server that is not there, is busy or speaks another version.
  explicit RpcServers(const std::vector<std::string>& endpoints);

  // Named after where they are reached, and which one it is if a server has several.
  const std::vector<NamedDevice>& devices() const { return devices_; }
  // Throws Error{kIo} once a server was lost, here or elsewhere in this process: nothing that was
  // computed since then means anything.
  void check() const;

 private:
  std::vector<std::string> endpoints_;
  std::vector<NamedDevice> devices_;
  std::vector<ggml_backend_ptr> connections_;  // kept open
  int64_t n_losses_before_;
  mutable std::once_flag looked_;
  mutable std::string lost_;  // which one, once it was looked
};

}  // namespace forerun
