#include "model/llama/rpc_servers.h"

#include <fmt/ranges.h>
#include <ggml-rpc.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <thread>

#include "core/error.h"
#include "gguf/ggml_aborts.h"
#include "gguf/ggml_log.h"
#include "model/llama/rpc_probe.h"
#include "rpc/losses.h"

namespace forerun {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 5s;  // for a server to answer
// To see which one was lost: what listens at a server that dies may be closed after its connections.
constexpr auto kPatienceAfter = 1s;
constexpr auto kBetweenLooks = 20ms;

ggml_backend_reg_t reach(const std::string& endpoint) {
  if (const auto obstacle = rpc_obstacle(endpoint, kPatience)) {
    fail(ErrorCode::kIo, "cannot use the RPC server {}: {}", endpoint, *obstacle);
  }
  ggml_backend_reg_t reg = ggml_backend_rpc_add_server(endpoint.c_str());
  if (reg == nullptr) fail(ErrorCode::kIo, "the RPC server {} has no device", endpoint);
  return reg;
}

std::string joined(const std::vector<std::string>& endpoints) {
  return fmt::format("{}", fmt::join(endpoints, ", "));
}

// Those that are gone, as soon as there are any; none: all are there, or there again.
std::vector<std::string> gone(const std::vector<std::string>& endpoints) {
  std::vector<std::string> gone;
  for (const auto end = std::chrono::steady_clock::now() + kPatienceAfter;
       gone.empty() && std::chrono::steady_clock::now() < end;
       std::this_thread::sleep_for(kBetweenLooks)) {
    std::ranges::copy_if(endpoints, std::back_inserter(gone), [](const std::string& endpoint) {
      return !rpc_is_there(endpoint, kPatienceAfter);
    });
  }
  return gone;
}

}  // namespace

void check_rpc_endpoint(const std::string& endpoint) {
  const size_t colon = endpoint.find(':');
  const char* end = endpoint.data() + endpoint.size();
  int port = 0;
  const bool is_number =
      colon != std::string::npos && std::from_chars(endpoint.data() + colon + 1, end, port) ==
                                        std::from_chars_result{end, std::errc()};
  if (!is_number || colon == 0 || port < 1 || port > 65535) {
    fail(ErrorCode::kInvalidArgument, "--rpc takes servers as host:port, not '{}'", endpoint);
  }
}

RpcServers::RpcServers(const std::vector<std::string>& endpoints)
    : endpoints_(endpoints), n_losses_before_(n_rpc_losses) {
  GgmlLogCapture log;
  const GgmlAbortsThrow aborts_throw;
  for (const std::string& endpoint : endpoints) {
    try {
      ggml_backend_reg_t reg = reach(endpoint);
      const size_t n_devices = ggml_backend_reg_dev_count(reg);
      for (size_t i = 0; i < n_devices; ++i) {
        ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, i);
        devices_.push_back(
            {.raw = device,
             .name = n_devices == 1 ? endpoint : fmt::format("{} (device {})", endpoint, i)});
        connections_.emplace_back(ggml_backend_dev_init(device, nullptr));
      }
    } catch (const Error&) {
      throw;
    } catch (const std::runtime_error& error) {  // what ggml would have aborted for
      fail(ErrorCode::kIo, "cannot use the RPC server {}: {}", endpoint, error.what());
    }
  }
  check();
}

void RpcServers::check() const {
  if (n_rpc_losses == n_losses_before_) return;
  std::call_once(looked_, [&] {
    const std::vector<std::string> lost = endpoints_.size() == 1 ? endpoints_ : gone(endpoints_);
    lost_ =
        lost.empty() ? "one of the RPC servers " + joined(endpoints_) : "the RPC server " + joined(lost);
  });
  fail(ErrorCode::kIo, "{} was lost while it computed: start it again, then forerun", lost_);
}

}  // namespace forerun
