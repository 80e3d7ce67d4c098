// People who share a server, but no datastore: the key of a request says whose texts drafts are taken
// from, and where its answer may be kept.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace forerun {

struct Tenant {
  std::string name;
  std::vector<std::string> keys;
  std::vector<std::filesystem::path> datastores = {};  // beside those of the server
  std::filesystem::path live_datastore = {};           // empty: none
};

// A JSON file: {"NAME": {"keys": ["..."], "datastores": ["..."], "live_datastore": "..."}, ...}. Paths
// in it begin at its folder. Throws Error{kNotFound, kInvalidArgument}.
std::vector<Tenant> read_tenants(const std::filesystem::path& path);

}  // namespace forerun
