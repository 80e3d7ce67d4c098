#include "gguf/ggml_log.h"

#include <ggml.h>
#include <llama.h>

#include <algorithm>
#include <cctype>

namespace forerun {
namespace {

thread_local GgmlLogCapture* current = nullptr;

}  // namespace

void append_ggml_log(int level, const char* text) {
  if (current == nullptr || level != GGML_LOG_LEVEL_ERROR) return;
  std::string line(text);
  while (!line.empty() && line.back() == '\n') line.pop_back();
  // It may quote a file, which may say anything.
  std::ranges::replace_if(
      line, [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  const size_t prefix = line.find(": ");
  if (prefix != std::string::npos && line.find(' ') > prefix) line.erase(0, prefix + 2);
  if (!line.empty()) current->errors_.push_back(std::move(line));
}

void silence_ggml_log() {
  const auto callback = [](ggml_log_level level, const char* text, void*) {
    append_ggml_log(static_cast<int>(level), text);
  };
  llama_log_set(callback, nullptr);  // sets ggml's too
}

GgmlLogCapture::GgmlLogCapture() : outer_(current) {
  static const bool silenced = (silence_ggml_log(), true);
  (void)silenced;
  current = this;
}

GgmlLogCapture::~GgmlLogCapture() {
  current = outer_;
}

std::string GgmlLogCapture::first_error() const {
  return errors_.empty() ? "unknown reason" : errors_.front();
}

}  // namespace forerun
