// Where a model, or a part of one, lives and computes: the CPU, or one GPU that ggml knows.
//
// The only place in forerun that knows which backend it runs on. Everything above
// asks for what it needs (memory, a buffer for a weight, a graph computed, a tensor
// read back) and gets what the device does best.
//
// The thread that opens a CPU device becomes the first of its workers
// and, when threads are pinned, is pinned with it; compute from that thread.
// Not thread-safe.
#pragma once

#include <ggml-cpp.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/cpu/worker_pool.h"
#include "model/gpu_kernels.h"
#include "model/kernels/kernels.h"
#include "model/kv_type.h"

namespace forerun {

struct DeviceOptions {
  std::string name = "auto";  // "auto" (a GPU if there is one), "cpu", "cuda", "cuda:1", or ggml's name
  int n_threads = 0;          // CPU threads; 0: one per physical core
  bool pin_threads = true;    // bind each to a CPU, where the system allows it
  KvType kv_type = KvType::kF16;  // of the caches there: our kernels on GPUs do not serve all
};

struct DeviceInfo {
  std::string name;         // what DeviceOptions::name takes
  std::string description;  // "NVIDIA H200", "Intel(R) Xeon(R) ..."
};

// One that ggml computes on, under the name that users know it by.
struct NamedDevice {
  ggml_backend_dev_t raw;
  std::string name;
};

// What its backend says.
size_t n_free_bytes(ggml_backend_dev_t device);

// Memory of the device, zeroed. Frees itself.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&&) = default;
  DeviceMemory& operator=(DeviceMemory&&) = default;

  ggml_backend_buffer_t buffer() const { return buffer_.get(); }
  size_t size() const { return buffer_ ? ggml_backend_buffer_get_size(buffer_.get()) : 0; }
  // For the CPU to use only if it is memory of the CPU.
  std::byte* data() const {
    return static_cast<std::byte*>(ggml_backend_buffer_get_base(buffer_.get()));
  }

 private:
  friend class Device;
  // Destroyed after the buffer that lies in it.
  std::unique_ptr<void, std::function<void(void*)>> mapping_;
  ggml_backend_buffer_ptr buffer_;
};

class Device {
 public:
  // Throws Error when there is no such device or the options make no sense.
  static std::shared_ptr<Device> open(const DeviceOptions& options = {});
  static std::vector<DeviceInfo> list();
  // Another one with the same options.
  std::shared_ptr<Device> beside(const std::string& name) const;

  const DeviceInfo& info() const { return info_; }
  int n_threads() const { return n_threads_; }
  KvType kv_type() const { return options_.kv_type; }
  // The CPU that each thread is bound to; empty: none is.
  std::span<const int> cpus() const { return cpus_; }
  ggml_backend_dev_t raw() const { return device_; }
  // This one if it is a GPU, and behind it the others here if nobody chose among them.
  std::vector<NamedDevice> gpus() const;

  // Whether tensors of this device can be read and written in place by the CPU.
  bool is_host() const { return is_host_; }

  // Our own kernels, where they compute on this device; nullptr: ggml's do.
  const KernelSet* kernels() const { return kernels_; }
  // The same on a GPU.
  GpuKernels* gpu_kernels() const { return gpu_kernels_.get(); }
  // Whether the device can multiply with weights of that type and shape.
  bool can_multiply(const ggml_tensor* weight) const;
  ggml_backend_buffer_type_t default_buffer_type() const;
  bool supports(const ggml_tensor* operation) const;

  // Memory that nobody uses.
  size_t n_free_bytes() const;
  // Throws Error{kOutOfMemory} when there is not that much; `what` is for the message.
  DeviceMemory allocate_zeroed(size_t n_bytes, const std::string& what) const;
  // The same for what is read again and again as a whole: in large pages where the system
  // has them, which take less looking up. (Memory that is filled bit by bit would take more
  // than it needs in them.)
  DeviceMemory allocate_weights(size_t n_bytes, const std::string& what) const;
  // Memory of the CPU from which this device copies fastest.
  DeviceMemory allocate_host(size_t n_bytes, const std::string& what) const;

  // Computes and waits. Throws Error when the device fails.
  void compute(ggml_cgraph* graph);
  // The same with our own kernels.
  void compute(std::span<const CpuStep> steps) { workers_->run(steps); }
  // Divides work on n things among threads, the caller among them: f(thread, thing), with threads from 0
  // to less than n_threads(). Not while something is computed.
  void share_out(size_t n, const std::function<void(int thread, size_t thing)>& f);
  // Starts copying to the device; `data` stays untouched until the next compute() returns.
  void upload(ggml_tensor* tensor, std::span<const std::byte> data);
  // A tensor's first `n` floats for the CPU to read: in place where it can, else copied into
  // `staging`, which grows as needed. Valid until the next compute() or read() into it.
  std::span<const float> read(const ggml_tensor* tensor, size_t n, DeviceMemory& staging) const;
  // The same to where the caller wants them.
  static void read(const ggml_tensor* tensor, std::span<float> to);

 private:
  Device() = default;
  void start_threads();
  static void map_host_memory(DeviceMemory& memory, size_t n_bytes);

  DeviceInfo info_;
  DeviceOptions options_;
  ggml_backend_dev_t device_ = nullptr;
  bool is_host_ = true;
  int n_threads_ = 1;
  const KernelSet* kernels_ = nullptr;
  std::unique_ptr<GpuKernels> gpu_kernels_;
  std::vector<int> cpus_;
  std::unique_ptr<WorkerPool> workers_;  // of a CPU, or beside a GPU once there is something to do
  ggml_backend_ptr backend_;
};

}  // namespace forerun
