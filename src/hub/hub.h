// A hub of models: what a repository has, and its files.
//
// What a hub says is not believed: answers have a limit, and paths and checksums have to look like such.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http_client/http_get.h"
#include "hub/checksum.h"

namespace forerun {

struct HubOptions {
  std::string endpoint;  // "https://host"
  std::string token;     // empty: none
  HttpOptions http = {};
};

// From HF_ENDPOINT and HF_TOKEN. Throws Error where the first is not set.
HubOptions hub_options_of_environment();

struct HubFile {
  std::string path;
  int64_t n_bytes = 0;
  Checksum checksum = {};
};

// A repository as it was at one commit.
struct HubRepository {
  std::string name;    // "org/repo"
  std::string commit;  // in hexadecimal
  std::vector<HubFile> files;
};

// Not thread-safe. What it throws is Error, if not said otherwise.
class Hub {
 public:
  explicit Hub(HubOptions options);

  const HttpOptions& http() const { return options_.http; }

  // Tries again where connections are lost.
  HubRepository repository(const std::string& name);

  // The answer to a request for a file, with status 200, 206 or 416. Throws ConnectionLost too.
  std::unique_ptr<HttpGet> file(const HubRepository& repository, const HubFile& file,
                                const HttpHeaders& headers);

 private:
  Url url(std::string_view target) const;
  std::unique_ptr<HttpGet> get(Url url, const HttpHeaders& headers, const std::string& repository) const;
  std::string commit_of(const std::string& name) const;
  std::vector<HubFile> files_of(const std::string& name, const std::string& commit) const;

  HubOptions options_;
  Url endpoint_;
};

}  // namespace forerun
