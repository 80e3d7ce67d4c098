#include "serve/page/page.h"

#include <algorithm>
#include <string>

#include "serve/page/page_files.h"

namespace forerun {
namespace {

constexpr std::string_view kPageFolder = "/page/";
constexpr std::string_view kFirstPageFile = "index.html";

// Nothing is loaded from elsewhere or written into the page as markup, whatever a model says.
constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

std::string_view page_file_name(std::string_view path) {
  if (path == "/" || path == "/index.html") return kFirstPageFile;
  return path.starts_with(kPageFolder) ? path.substr(kPageFolder.size()) : std::string_view();
}

std::string page_content_type(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  return "image/svg+xml";
}

}  // namespace

std::optional<HttpResponse> show_page(std::string_view path) {
  const auto files = page_files();
  const auto found = std::ranges::find(files, page_file_name(path), &PageFile::name);
  if (found == files.end()) return std::nullopt;
  return HttpResponse{.body = std::string(found->bytes),
                      .content_type = page_content_type(found->name),
                      .headers = {{"Content-Security-Policy", kPagePolicy},
                                  {"X-Content-Type-Options", "nosniff"},
                                  {"Referrer-Policy", "no-referrer"},
                                  {"Cache-Control", "no-cache"}}};
}

}  // namespace forerun
