#include "cli/server_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "core/cache_folder.h"
#include "core/error.h"
#include "core/replace_file.h"

namespace forerun {
namespace {

constexpr std::string_view kRecordSuffix = ".json";
constexpr size_t kMaxRecordBytes = 16384;

std::filesystem::path made_server_folder() {
  const std::filesystem::path folder = server_folder();
  std::filesystem::create_directories(folder.parent_path());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail_io("make", folder, errno);
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::geteuid()) {
    fail(ErrorCode::kIo, "{} is no folder of this user", folder.string());
  }
  return folder;
}

// nullopt: it is another user's, or says nothing that makes sense.
std::optional<ServerFacts> facts_in(const OpenFile& file) {
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0 || status.st_uid != ::geteuid()) return std::nullopt;
  std::array<char, kMaxRecordBytes> bytes{};
  const ssize_t n = ::pread(file.fd(), bytes.data(), bytes.size(), 0);
  if (n <= 0) return std::nullopt;
  const auto json = nlohmann::json::parse(bytes.begin(), bytes.begin() + n, nullptr, false);
  try {
    return ServerFacts{.pid = json.at("pid").get<int>(),
                       .url = json.at("url").get<std::string>(),
                       .model = json.at("model").get<std::string>()};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::filesystem::path server_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != '\0') return std::filesystem::path(runtime) / "forerun";
  return cache_folder() / "run";
}

// Locked before it has the name that others look for.
ServerRecord::ServerRecord(const ServerFacts& facts)
    : path_(made_server_folder() / fmt::format("{}{}", facts.pid, kRecordSuffix)),
      file_(path_.string() + ".part", O_RDWR | O_CREAT | O_TRUNC, 0600) {
  const std::string part = path_.string() + ".part";
  if (::flock(file_.fd(), LOCK_EX | LOCK_NB) != 0) fail_io("lock", part, errno);
  const nlohmann::ordered_json json = {{"pid", facts.pid}, {"url", facts.url}, {"model", facts.model}};
  const std::string text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  write_at(file_.fd(), 0, std::as_bytes(std::span(text)), part);
  if (::rename(part.c_str(), path_.c_str()) != 0) fail_io("write", path_, errno);
}

ServerRecord::~ServerRecord() {
  ::unlink(path_.c_str());
}

std::vector<ServerFacts> running_servers() {
  std::vector<ServerFacts> servers;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(server_folder(), ignored), end;
       !ignored && entry != end; entry.increment(ignored)) {
    if (entry->path().extension() != kRecordSuffix) continue;
    try {
      const OpenFile file(entry->path(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      if (::flock(file.fd(), LOCK_SH | LOCK_NB) == 0) {
        ::unlink(entry->path().c_str());
      } else if (auto facts = facts_in(file)) {
        servers.push_back(std::move(*facts));
      }
    } catch (const Error&) {
      // It has ended just now.
    }
  }
  std::sort(servers.begin(), servers.end(),
            [](const ServerFacts& a, const ServerFacts& b) { return a.pid < b.pid; });
  return servers;
}

}  // namespace forerun
