#include "serve/tenants.h"

#include <fstream>
#include <iterator>
#include <set>

#include "core/error.h"
#include "serve/protocol/json_fields.h"

namespace forerun {
namespace {

std::vector<std::string> texts_of(const Json& tenant, const char* name) {
  std::vector<std::string> texts;
  const Json* list = array_field(tenant, name);
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const Json& text = (*list)[i];
    if (!text.is_string() || text.get_ref<const std::string&>().empty()) {
      fail(ErrorCode::kInvalidArgument, "\"{}\" must be texts", name);
    }
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

Tenant read_tenant(const std::string& name, const Json& fields, const std::filesystem::path& folder) {
  if (!fields.is_object()) fail(ErrorCode::kInvalidArgument, "it must be an object");
  for (const auto& [field, value] : fields.items()) {
    if (field != "keys" && field != "datastores" && field != "live_datastore") {
      fail(ErrorCode::kInvalidArgument, "there is no field \"{}\"", field);
    }
  }
  if (name.empty()) fail(ErrorCode::kInvalidArgument, "a tenant needs a name");
  Tenant tenant{.name = name, .keys = texts_of(fields, "keys")};
  if (tenant.keys.empty()) fail(ErrorCode::kInvalidArgument, "\"keys\" must have a key at least");
  for (const std::string& path : texts_of(fields, "datastores")) {
    tenant.datastores.push_back(folder / path);
  }
  if (const auto live = string_field(fields, "live_datastore")) {
    if (live->empty()) fail(ErrorCode::kInvalidArgument, "\"live_datastore\" is empty: leave it out");
    tenant.live_datastore = folder / *live;
  }
  return tenant;
}

}  // namespace

std::vector<Tenant> read_tenants(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) fail(ErrorCode::kNotFound, "cannot read {}", path.string());
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<Tenant> tenants;
  std::set<std::string> keys;
  std::set<std::filesystem::path> stores;
  std::string at;
  try {
    const Json all = parse_object(text);
    for (const auto& [name, fields] : all.items()) {
      at = fmt::format(" of \"{}\"", name);
      tenants.push_back(read_tenant(name, fields, path.parent_path()));
      for (const std::string& key : tenants.back().keys) {
        if (!keys.insert(key).second) fail(ErrorCode::kInvalidArgument, "a key is there twice");
      }
      const auto& live = tenants.back().live_datastore;
      if (!live.empty() && !stores.insert(live.lexically_normal()).second) {
        fail(ErrorCode::kInvalidArgument, "another one has the same live datastore");
      }
    }
    if (tenants.empty()) fail(ErrorCode::kInvalidArgument, "there is no tenant");
  } catch (const Error& error) {
    fail(ErrorCode::kInvalidArgument, "{}{}: {}", path.string(), at, error.what());
  }
  return tenants;
}

}  // namespace forerun
