// ggml and libllama end the process where they find that something cannot be, also when a damaged file
// asks for it. While one of these lives, what does so on its thread throws instead.
//
// For loading and for building graphs, which happens on the caller's thread. Not for computing: other
// threads would wait for ever.
#pragma once

namespace forerun {

class GgmlAbortsThrow {
 public:
  GgmlAbortsThrow();
  ~GgmlAbortsThrow();
  GgmlAbortsThrow(const GgmlAbortsThrow&) = delete;
  GgmlAbortsThrow& operator=(const GgmlAbortsThrow&) = delete;

 private:
  bool was_active_;
};

}  // namespace forerun
