#include "serve/access.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace forerun {
namespace {

constexpr std::string_view kBearer = "Bearer ";

// Of equal length, so that comparing two tells nothing of either.
std::array<unsigned char, SHA256_DIGEST_LENGTH> digest(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> result{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), result.data());
  return result;
}

std::string_view key_of(const HttpRequest& request) {
  const std::string_view authorization = request.header("authorization");
  if (authorization.starts_with(kBearer)) return authorization.substr(kBearer.size());
  return request.header("x-api-key");
}

// http://localhost:8080, http://[::1], ...
bool is_local(std::string_view origin) {
  const size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos) return false;
  std::string_view host = origin.substr(scheme + 3);
  const bool is_bracketed = host.starts_with('[');
  host = is_bracketed ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

}  // namespace

Access::Access(std::vector<std::string> keys, const std::vector<Tenant>& tenants,
               const std::string& cors_origins) {
  for (std::string& key : keys) keys_.push_back({.key = std::move(key), .tenant = ""});
  for (const Tenant& tenant : tenants) {
    for (const std::string& key : tenant.keys) keys_.push_back({.key = key, .tenant = tenant.name});
  }
  for (std::string_view left = cors_origins; !left.empty();) {
    const std::string_view one = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), one.size() + 1));
    if (one == "*") {
      allows_all_ = true;
    } else if (one == "localhost") {
      allows_local_ = true;
    } else {
      origins_.emplace_back(one);
    }
  }
}

std::optional<std::string> Access::who(const HttpRequest& request) const {
  if (keys_.empty()) return "";
  const auto given = digest(key_of(request));
  const Key* found = nullptr;
  for (const Key& key : keys_) {
    const auto wanted = digest(key.key);
    if (CRYPTO_memcmp(given.data(), wanted.data(), given.size()) == 0) found = &key;
  }
  return found != nullptr ? std::optional(found->tenant) : std::nullopt;
}

bool Access::allows(std::string_view origin) const {
  return allows_all_ || (allows_local_ && is_local(origin)) ||
         std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
}

void Access::add_cors_headers(Exchange& exchange) const {
  const std::string_view origin = exchange.request().header("origin");
  if (origin.empty() || !allows(origin)) return;
  exchange.add_header("Access-Control-Allow-Origin", std::string(origin));
  exchange.add_header("Vary", "Origin");
  exchange.add_header("Access-Control-Allow-Credentials", "true");
  if (exchange.request().method != "OPTIONS") return;
  exchange.add_header("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
  exchange.add_header("Access-Control-Allow-Headers", "*");
}

}  // namespace forerun
