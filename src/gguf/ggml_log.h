// What ggml and libllama print, kept off the terminal.
//
// Both log through process-wide callbacks. forerun is silent unless something
// fails, and then says so in one line of its own; the libraries' reason is often
// worth quoting in it. A GgmlLogCapture collects what the current thread's calls
// print while it lives.
#pragma once

#include <string>
#include <vector>

namespace forerun {

// Routes ggml's and libllama's log to us. Called by every GgmlLogCapture; call it
// early in a program so that nothing is printed before.
void silence_ggml_log();

class GgmlLogCapture {
 public:
  GgmlLogCapture();
  ~GgmlLogCapture();
  GgmlLogCapture(const GgmlLogCapture&) = delete;
  GgmlLogCapture& operator=(const GgmlLogCapture&) = delete;

  // The first error line without its "function: " prefix, or "unknown reason".
  // The first names the cause; later ones say that the caller failed too.
  std::string first_error() const;

 private:
  friend void append_ggml_log(int level, const char* text);
  GgmlLogCapture* outer_;
  std::vector<std::string> errors_;
};

}  // namespace forerun
