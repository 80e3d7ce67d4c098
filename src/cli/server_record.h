// Which servers run on this machine: each keeps a small file about itself in a folder of its user.
//
// A server has its file locked, so that whoever finds one that is not locked knows that its server is
// gone, however it ended.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hub/file_lock.h"

namespace forerun {

struct ServerFacts {
  int pid = 0;
  std::string url;    // "http://127.0.0.1:8080"
  std::string model;  // what it is listed by
};

// $XDG_RUNTIME_DIR/forerun, or run/ in the cache folder.
std::filesystem::path server_folder();

// The file of this process's server, removed at its end.
class ServerRecord {
 public:
  // Throws Error.
  explicit ServerRecord(const ServerFacts& facts);
  ~ServerRecord();
  ServerRecord(const ServerRecord&) = delete;
  ServerRecord& operator=(const ServerRecord&) = delete;

 private:
  std::filesystem::path path_;
  OpenFile file_;
};

// Those that run. Files of others are removed.
std::vector<ServerFacts> running_servers();

}  // namespace forerun
