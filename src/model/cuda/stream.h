// A CUDA stream, and passes that were captured on one: the GPU is told once what to launch, and then
// runs it as often as wanted without being told again.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>

namespace forerun::cuda {

// Throws Error with what CUDA says; `what` was tried.
void check(cudaError_t error, const char* what);

struct GraphDeleter {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
using CapturedGraph = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, GraphDeleter>;

class Stream {
 public:
  explicit Stream(int device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  int device() const { return device_; }
  // Makes the device that of the calling thread.
  void use_device() const;

  // What `launch` does on the stream, not done yet.
  CapturedGraph capture(const std::function<void()>& launch) const;
  // Runs and waits.
  void run(const CapturedGraph& graph) const;
  // For what was launched.
  void wait() const;
  // Begins to copy; `from` is pinned and stays untouched until run() returns.
  void upload(void* to, std::span<const std::byte> from) const;

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace forerun::cuda
