#include "gguf/ggml_aborts.h"

#include <ggml.h>

#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace forerun {
namespace {

thread_local bool is_active = false;

// Unwinds through frames of C, which is defined where they have tables for it: on all systems we run on
// they have.
void on_abort(const char* message) {
  if (!is_active) {
    std::fprintf(stderr, "%s\n", message);
    return;  // and the process ends
  }
  const std::string_view where_and_why = message;
  throw std::runtime_error(std::string(where_and_why.substr(where_and_why.rfind('/') + 1)));
}

}  // namespace

GgmlAbortsThrow::GgmlAbortsThrow() : was_active_(std::exchange(is_active, true)) {
  static std::once_flag once;
  std::call_once(once, [] { ggml_set_abort_callback(on_abort); });
}

GgmlAbortsThrow::~GgmlAbortsThrow() {
  is_active = was_active_;
}

}  // namespace forerun
