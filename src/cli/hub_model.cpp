#include "cli/hub_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "core/error.h"
#include "hub/pull.h"
#include "text/printable.h"

namespace forerun {
namespace {

using namespace std::chrono_literals;

// A line on a terminal's standard error, drawn over itself.
class PullLine {
 public:
  ~PullLine() { clear(); }

  void show(const HubFile& file, int64_t n_done) {
    const auto now = Clock::now();
    if (file.path != path_) {
      path_ = file.path;
      start_ = now;
      n_first_ = n_done;
    }
    if (!is_terminal_ || now < next_) return;
    next_ = now + 200ms;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double rate = seconds > 0 ? static_cast<double>(n_done - n_first_) / seconds : 0;
    const auto megabytes = [](int64_t n) { return static_cast<double>(n) / 1e6; };
    const std::string left =
        rate > 0
            ? fmt::format(", {} left", time_in_words(static_cast<double>(file.n_bytes - n_done) / rate))
            : "";
    fmt::print(stderr, "\r\033[K{} {:.0f} %: {:.1f} of {:.1f} MB, {:.1f} MB/s{}", printable(path_),
               100.0 * megabytes(n_done) / megabytes(file.n_bytes), megabytes(n_done),
               megabytes(file.n_bytes), rate / 1e6, left);
    std::fflush(stderr);
    is_drawn_ = true;
  }

  void clear() {
    if (is_drawn_) std::fputs("\r\033[K", stderr);
    is_drawn_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool is_terminal_ = ::isatty(STDERR_FILENO) != 0;
  bool is_drawn_ = false;
  std::string path_;
  Clock::time_point start_{};
  Clock::time_point next_{};
  int64_t n_first_ = 0;  // what was there before
};

}  // namespace

void add_hub_options(CLI::App& command, HubChoice& choice, CLI::Option* named) {
  CLI::Option* model = command.add_option("--hf-repo", choice.model,
                                          "-hf ORG/REPO[:QUANT]: instead, a model of a hub, pulled if "
                                          "it is not here ('forerun pull --help')");
  model->excludes(named);
  command.add_option("--hf-file", choice.file, "-hff FILE: which file of that repository")->needs(model);
}

HubName hub_name_of(const std::string& text) {
  const auto name = parse_hub_name(text);
  if (!name) {
    fail(ErrorCode::kInvalidArgument, "'{}' is no name of a hub's model: ORG/REPO, or ORG/REPO:QUANT",
         text);
  }
  return *name;
}

std::string chosen_model(const std::string& named, const HubChoice& choice) {
  if (choice.model.empty()) return named;
  const HubName name = hub_name_of(choice.model);
  if (const auto file = find_pulled(name, choice.file)) return file->string();
  return pull_showing_progress(name, choice.file).string();
}

std::filesystem::path pull_showing_progress(const HubName& name, const std::string& file) {
  HubOptions options = hub_options_of_environment();
  const InterruptGuard interrupts;
  PullLine line;
  options.http.on_wait = [&line] {
    if (!InterruptGuard::take()) return;
    line.clear();
    fmt::print(stderr, "forerun: interrupted; the same command goes on where this was\n");
    throw Interrupted{};
  };
  Hub hub(options);
  return pull_model(hub, {.name = name,
                          .file = file,
                          .progress = [&line](const HubFile& one, int64_t n) { line.show(one, n); }});
}

}  // namespace forerun
