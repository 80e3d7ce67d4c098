#include "cli/terminal/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace forerun {

using namespace std::chrono_literals;

std::string time_in_words(double seconds) {
  const auto s = static_cast<int64_t>(seconds + 0.5);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{}:{:02} min", s / 60, s % 60);
  return fmt::format("{}:{:02} h", s / 3600, s / 60 % 60);
}

WorkProgress::WorkProgress(std::string what)
    : what_(std::move(what)), terminal_(::isatty(STDERR_FILENO) != 0), next_(start_ + 1s) {}

WorkProgress::~WorkProgress() {
  if (drawn_ && terminal_) std::fprintf(stderr, "\r\033[K");
}

double WorkProgress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void WorkProgress::show(double share, const std::string& more) {
  if (Clock::now() < next_) return;
  next_ = Clock::now() + (terminal_ ? Clock::duration(200ms) : Clock::duration(10s));
  const double passed = seconds();
  // At the very beginning nobody knows.
  const std::string left =
      share > 0.001 ? fmt::format(", {} left", time_in_words(passed / share * (1 - share))) : "";
  const std::string line = fmt::format("{} {:.0f} %{}{}", what_, 100 * share, more, left);
  std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
  drawn_ = true;
}

}  // namespace forerun
