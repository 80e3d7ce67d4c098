#include "hub/hub.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "engine/hub_names.h"
#include "hub/retries.h"

namespace forerun {
namespace {

using Json = nlohmann::json;

constexpr int kMaxRedirects = 5;
constexpr int kMaxPages = 100;
constexpr size_t kMaxAnswerBytes = 16 << 20;
constexpr int64_t kMaxFileBytes = int64_t{1} << 44;
constexpr const char* kRevision = "main";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value != nullptr ? value : "";
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  return text;
}

bool is_hex(std::string_view text, size_t size) {
  return text.size() == size && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isdigit(c) != 0 || (c >= 'a' && c <= 'f');
         });
}

[[noreturn]] void fail_nonsense(const std::string& repository) {
  fail(ErrorCode::kInvalidFile,
       "the hub's answer about {} makes no sense: is HF_ENDPOINT the address of a model hub?",
       repository);
}

Json json_of(HttpGet& answer, const std::string& repository) {
  Json json = Json::parse(answer.read_all(kMaxAnswerBytes), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) fail_nonsense(repository);
  return json;
}

std::string text_of(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<int64_t> size_of(const Json& object) {
  const auto found = object.find("size");
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto n_bytes = found->get<uint64_t>();
  return n_bytes <= kMaxFileBytes ? std::optional(static_cast<int64_t>(n_bytes)) : std::nullopt;
}

// nullopt: it is no file, or none that could be meant by anybody.
std::optional<HubFile> file_of(const Json& entry, const std::string& repository) {
  if (!entry.is_object()) fail_nonsense(repository);
  if (text_of(entry, "type") != "file") return std::nullopt;
  HubFile file{.path = text_of(entry, "path")};
  if (!is_safe_hub_path(file.path)) return std::nullopt;
  const auto lfs = entry.find("lfs");
  const bool is_large = lfs != entry.end() && lfs->is_object();
  file.checksum = {.kind = is_large ? Checksum::Kind::kSha256 : Checksum::Kind::kGitBlob,
                   .hex = text_of(is_large ? *lfs : entry, "oid")};
  const auto n_bytes = size_of(is_large && lfs->contains("size") ? *lfs : entry);
  if (!n_bytes || !is_hex(file.checksum.hex, is_large ? 64 : 40)) fail_nonsense(repository);
  file.n_bytes = *n_bytes;
  return file;
}

// Of `Link: <address>; rel="next"`.
std::string next_page(const std::string& link) {
  const size_t rel = link.find("rel=\"next\"");
  if (rel == std::string::npos) return {};
  const size_t begin = link.rfind('<', rel), end = link.rfind('>', rel);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return link.substr(begin + 1, end - begin - 1);
}

[[noreturn]] void fail_status(int status, const std::string& repository, bool has_token) {
  const char* token =
      has_token ? "the token in HF_TOKEN gives no access to it" : "set HF_TOKEN if it needs a token";
  switch (status) {
    case 401:
      fail(ErrorCode::kNotFound, "the hub shows no {} (401): check the name; {}", repository, token);
    case 403:
      fail(ErrorCode::kNotFound,
           "the hub gives no access to {} (403): accept its terms on its page there; {}", repository,
           token);
    case 404:
      fail(ErrorCode::kNotFound, "the hub has no {} (404): check the name; {}", repository, token);
    default: fail(ErrorCode::kIo, "the hub answers for {} with status {}", repository, status);
  }
}

}  // namespace

HubOptions hub_options_of_environment() {
  HubOptions options{.endpoint = variable("HF_ENDPOINT"), .token = variable("HF_TOKEN")};
  if (options.endpoint.empty()) {
    fail(ErrorCode::kInvalidArgument,
         "no model hub is known: set HF_ENDPOINT to its address (HF_ENDPOINT=https://...)");
  }
  const bool is_plain = std::all_of(options.token.begin(), options.token.end(),
                                    [](char c) { return c > ' ' && c < 0x7f; });
  if (!is_plain) fail(ErrorCode::kInvalidArgument, "HF_TOKEN is no token: it has spaces or line ends");
  return options;
}

Hub::Hub(HubOptions options) : options_(std::move(options)), endpoint_(parse_url(options_.endpoint)) {
  std::string& path = endpoint_.target;
  path.resize(path.find_last_not_of('/') + 1);
}

Url Hub::url(std::string_view target) const {
  Url result = endpoint_;
  result.target += target;
  return result;
}

std::unique_ptr<HttpGet> Hub::get(Url url, const HttpHeaders& headers,
                                  const std::string& repository) const {
  for (int i = 0; i <= kMaxRedirects; ++i) {
    HttpHeaders all = headers;
    // Files often lie with somebody else, whom the token is not for.
    if (!options_.token.empty() && url.origin() == endpoint_.origin()) {
      all.emplace_back("Authorization", "Bearer " + options_.token);
    }
    auto answer = std::make_unique<HttpGet>(url, all, options_.http);
    const int status = answer->status();
    if (status == 200 || status == 206 || status == 416) return answer;
    if (status == 429 || status >= 500) {
      throw ConnectionLost(fmt::format("{} answers with status {}", url.origin(), status));
    }
    const std::string location = answer->header("Location");
    const bool is_redirect = status >= 301 && status <= 308 && status != 304 && !location.empty();
    if (!is_redirect) fail_status(status, repository, !options_.token.empty());
    const Url next = joined_url(url, location);
    if (url.is_tls && !next.is_tls) {
      fail(ErrorCode::kIo, "the hub leads from https to http for {}, where anybody could change it",
           repository);
    }
    url = next;
  }
  fail(ErrorCode::kIo, "the hub leads from one address to the next for {}, and nowhere", repository);
}

std::string Hub::commit_of(const std::string& name) const {
  const auto answer = get(url(fmt::format("/api/models/{}/revision/{}", name, kRevision)), {}, name);
  const std::string commit = text_of(json_of(*answer, name), "sha");
  if (!is_hex(commit, 40)) fail_nonsense(name);
  return commit;
}

std::vector<HubFile> Hub::files_of(const std::string& name, const std::string& commit) const {
  std::vector<HubFile> files;
  Url page = url(fmt::format("/api/models/{}/tree/{}?recursive=true", name, commit));
  for (int i = 0; i < kMaxPages; ++i) {
    const auto answer = get(page, {}, name);
    const std::string next = next_page(answer->header("Link"));
    const Json entries = json_of(*answer, name);
    if (!entries.is_array()) fail_nonsense(name);
    for (const Json& entry : entries) {
      if (auto file = file_of(entry, name)) files.push_back(std::move(*file));
    }
    if (next.empty()) return files;
    page = joined_url(page, next);
  }
  fail_nonsense(name);
}

HubRepository Hub::repository(const std::string& name) {
  return with_retries(options_.http.on_wait, [&] {
    const std::string commit = commit_of(name);
    return HubRepository{.name = name, .commit = commit, .files = files_of(name, commit)};
  });
}

std::unique_ptr<HttpGet> Hub::file(const HubRepository& repository, const HubFile& file,
                                   const HttpHeaders& headers) {
  const std::string target =
      fmt::format("/{}/resolve/{}/{}", repository.name, repository.commit, encoded_path(file.path));
  return get(url(target), headers, repository.name + "/" + file.path);
}

}  // namespace forerun
