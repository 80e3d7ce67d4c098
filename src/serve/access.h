// Who may ask: API keys, and pages of other origins.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/http/exchange.h"
#include "serve/tenants.h"

namespace forerun {

class Access {
 public:
  // The keys of everybody, and of each tenant.
  Access(std::vector<std::string> keys, const std::vector<Tenant>& tenants,
         const std::string& cors_origins);

  // Whose key the request has, in `Authorization: Bearer` or `X-Api-Key`: a tenant's name, or "" for
  // everybody's. nullopt: it has none and needs one. Takes as long whatever it has.
  std::optional<std::string> who(const HttpRequest& request) const;

  // What browsers are to be told of pages from elsewhere.
  void add_cors_headers(Exchange& exchange) const;

 private:
  bool allows(std::string_view origin) const;

  struct Key {
    std::string key;
    std::string tenant;
  };
  std::vector<Key> keys_;
  bool allows_all_ = false;
  bool allows_local_ = false;
  std::vector<std::string> origins_;
};

}  // namespace forerun
