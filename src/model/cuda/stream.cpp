#include "model/cuda/stream.h"

#include "core/error.h"

namespace forerun::cuda {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // so that nobody else gets it
  fail(error == cudaErrorMemoryAllocation ? ErrorCode::kOutOfMemory : ErrorCode::kUnsupported,
       "the GPU failed to {}: {}", what, cudaGetErrorString(error));
}

Stream::Stream(int device) : device_(device) {
  use_device();
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "start");
}

Stream::~Stream() {
  cudaStreamDestroy(stream_);
}

void Stream::use_device() const {
  check(cudaSetDevice(device_), "be used");
}

CapturedGraph Stream::capture(const std::function<void()>& launch) const {
  use_device();
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "prepare a pass");
  cudaGraph_t graph = nullptr;
  try {
    launch();
  } catch (...) {
    cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream_, &graph), "prepare a pass");
  const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, decltype(&cudaGraphDestroy)> owned(
      graph, &cudaGraphDestroy);
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph, 0), "prepare a pass");
  return CapturedGraph(executable);
}

void Stream::run(const CapturedGraph& graph) const {
  use_device();
  check(cudaGraphLaunch(graph.get(), stream_), "compute");
  wait();
}

void Stream::wait() const {
  check(cudaStreamSynchronize(stream_), "compute");
}

void Stream::upload(void* to, std::span<const std::byte> from) const {
  use_device();  // a model may be spread over several
  check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, stream_),
        "take its inputs");
}

}  // namespace forerun::cuda
