#include "bench/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/cpu_topology.h"
#include "core/error.h"

namespace forerun {
namespace {

// A file that goes when it is closed, however we end.
int open_log() {
  std::string path = (std::filesystem::temp_directory_path() / "forerun-XXXXXX").string();
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) fail(ErrorCode::kIo, "cannot make a temporary file {}: set TMPDIR", path);
  ::unlink(path.c_str());
  return file;
}

// In the child: only calls that are safe between fork and exec. Where exec fails, says why
// into `failure`.
[[noreturn]] void become(char* const* argv, pid_t parent, int log, int failure) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before that
  unpin_current_thread();
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execvp(argv[0], argv);
  const int error = errno;
  if (::write(failure, &error, sizeof(error)) < 0) ::_exit(126);
  ::_exit(127);
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::array<int, 2> failure{};  // closed by exec, or says why there was none
  if (::pipe2(failure.data(), O_CLOEXEC) != 0) fail(ErrorCode::kIo, "cannot make a pipe");
  const pid_t parent = ::getpid();
  log_ = open_log();
  process_ = ::fork();
  if (process_ == 0) become(argv.data(), parent, log_, failure[1]);
  int error = process_ < 0 ? errno : 0;
  ::close(failure[1]);
  while (process_ > 0 && ::read(failure[0], &error, sizeof(error)) < 0 && errno == EINTR) {
  }
  ::close(failure[0]);
  if (error == 0) return;
  if (process_ > 0) reap(0);
  ::close(log_);
  fail(ErrorCode::kNotFound, "cannot start {}: {}", arguments[0], std::strerror(error));
}

ChildProcess::~ChildProcess() {
  if (is_running()) {
    ::kill(process_, SIGKILL);
    reap(0);
  }
  ::close(log_);
}

bool ChildProcess::reap(int flags) {
  int status = 0;
  pid_t got = 0;
  while ((got = ::waitpid(process_, &status, flags)) < 0 && errno == EINTR) {
  }
  if (got == process_) status_ = status;
  return got == process_;
}

bool ChildProcess::is_running() {
  return !status_ && !reap(WNOHANG);
}

bool ChildProcess::wait() {
  if (!status_) reap(0);
  return status_ && WIFEXITED(*status_) && WEXITSTATUS(*status_) == 0;
}

std::string ChildProcess::end_words() const {
  if (!status_) return "runs";
  if (WIFEXITED(*status_)) return fmt::format("ended with code {}", WEXITSTATUS(*status_));
  const int signal = WTERMSIG(*status_);
  return fmt::format("was killed by signal {} ({})", signal, ::strsignal(signal));
}

std::string ChildProcess::output() const {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0;
       (n = ::pread(log_, buffer.data(), buffer.size(), static_cast<off_t>(text.size()))) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  return text;
}

std::string ChildProcess::last_line() const {
  const std::string text = output();
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "";
  const size_t start = text.find_last_of("\r\n", end) + 1;  // npos + 1 is 0
  return text.substr(start, end + 1 - start);
}

}  // namespace forerun
