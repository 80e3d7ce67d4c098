// Whether an RPC server answers, asked without ggml, which would wait for ever for one that is busy.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace forerun {

// What keeps a server at "host:port" from serving us; nullopt: nothing does.
std::optional<std::string> rpc_obstacle(const std::string& endpoint, std::chrono::milliseconds patience);
// Whether anything listens there, be it busy.
bool rpc_is_there(const std::string& endpoint, std::chrono::milliseconds patience);

}  // namespace forerun
