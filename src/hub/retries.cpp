#include "hub/retries.h"

#include <chrono>
#include <thread>

#include "core/error.h"

namespace forerun {
namespace {

using namespace std::chrono_literals;

constexpr int kMaxLosses = 6;
constexpr std::chrono::milliseconds kFirstPause = 250ms;
constexpr std::chrono::milliseconds kStep = 50ms;

}  // namespace

void Retries::after(const ConnectionLost& loss) {
  if (++n_lost_ >= kMaxLosses) {
    fail(ErrorCode::kIo, "{}; tried {} times: try again later, what came so far is kept", loss.what(),
         n_lost_);
  }
  const auto end = std::chrono::steady_clock::now() + kFirstPause * (1 << (n_lost_ - 1));
  while (std::chrono::steady_clock::now() < end) {
    on_wait_();
    std::this_thread::sleep_for(kStep);
  }
}

}  // namespace forerun
