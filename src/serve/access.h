// Who may ask: API keys, and pages of other origins.
#pragma once

#include <string>
#include <vector>

#include "serve/http/exchange.h"

namespace forerun {

class Access {
 public:
  Access(std::vector<std::string> keys, const std::string& cors_origins);

  // Whether the request has one of the keys, in `Authorization: Bearer` or `X-Api-Key`. Takes as long
  // whatever it has.
  bool has_key(const HttpRequest& request) const;

  // What browsers are to be told of pages from elsewhere.
  void add_cors_headers(Exchange& exchange) const;

 private:
  bool allows(std::string_view origin) const;

  std::vector<std::string> keys_;
  bool allows_all_ = false;
  bool allows_local_ = false;
  std::vector<std::string> origins_;
};

}  // namespace forerun
