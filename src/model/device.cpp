#include "model/device.h"

#include <ggml-cpu.h>
#include <sys/mman.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "core/cpu_topology.h"
#include "core/error.h"
#include "gguf/ggml_log.h"
#include "model/host_memory.h"

namespace forerun {
namespace {

// More threads than this only wait for each other, and some systems refuse them.
constexpr int kMaxThreadsPerCpu = 4;
// Beside a GPU. More would hardly be quicker, and wait on more CPUs.
constexpr int kMostHelpers = 8;

bool is_cpu(ggml_backend_dev_t device) {
  return ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
}

bool is_gpu(ggml_backend_dev_t device) {
  const auto type = ggml_backend_dev_type(device);
  return type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
}

// To compare ours with.
bool wants_ggml_kernels() {
  const char* wanted = std::getenv("FORERUN_KERNELS");
  return wanted != nullptr && std::string_view(wanted) == "ggml";
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// ggml calls its devices CPU, CUDA0, CUDA1, ...; users say cpu, cuda, cuda:1.
std::string public_name(ggml_backend_dev_t device) {
  const std::string name = lower(ggml_backend_dev_name(device));
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits == name.size()) return name;
  return name.substr(0, digits) + ":" + name.substr(digits);
}

bool matches(ggml_backend_dev_t device, const std::string& wanted) {
  const std::string name = public_name(device);
  return wanted == name || wanted == lower(ggml_backend_dev_name(device)) || wanted + ":0" == name;
}

std::vector<ggml_backend_dev_t> usable_devices() {
  std::vector<ggml_backend_dev_t> devices;
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    if (is_cpu(device) || is_gpu(device)) devices.push_back(device);
  }
  return devices;
}

DeviceInfo describe(ggml_backend_dev_t device) {
  return {.name = public_name(device), .description = ggml_backend_dev_description(device)};
}

bool is_choice(const std::string& name) {
  return lower(name) != "auto";
}

ggml_backend_dev_t find_device(const std::string& name) {
  const auto devices = usable_devices();
  const std::string wanted = lower(name);
  if (!is_choice(name)) {
    const auto gpu = std::find_if(devices.begin(), devices.end(), is_gpu);
    if (gpu != devices.end()) return *gpu;
    return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  }
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](ggml_backend_dev_t d) { return matches(d, wanted); });
  if (found != devices.end()) return *found;
  std::string known = "auto";
  for (ggml_backend_dev_t device : devices) known += ", " + public_name(device);
  fail(ErrorCode::kNotFound, "no device '{}' here; --device takes {}{}", name, known,
       wanted.starts_with("cuda") ? " (a CUDA build is made with 'make CUDA=1')" : "");
}

}  // namespace

std::shared_ptr<Device> Device::open(const DeviceOptions& options) {
  GgmlLogCapture log;
  std::shared_ptr<Device> device(new Device());
  device->device_ = find_device(options.name);
  device->info_ = describe(device->device_);
  device->options_ = options;
  device->is_host_ = ggml_backend_buft_is_host(ggml_backend_dev_buffer_type(device->device_));
  if (is_cpu(device->device_)) device->kernels_ = &best_kernels();
  if (is_gpu(device->device_) && !wants_ggml_kernels())
    device->gpu_kernels_ = make_gpu_kernels(device->device_);
  device->backend_.reset(ggml_backend_dev_init(device->device_, nullptr));
  if (!device->backend_) {
    fail(ErrorCode::kUnsupported, "cannot start device {}: {}", device->info_.name, log.first_error());
  }
  device->start_threads();
  return device;
}

std::shared_ptr<Device> Device::beside(const std::string& name) const {
  DeviceOptions options = options_;
  options.name = name;
  return open(options);
}

void Device::start_threads() {
  const DeviceOptions& options = options_;
  const CpuTopology topology = cpu_topology();
  const int most = std::min(GGML_MAX_N_THREADS,
                            kMaxThreadsPerCpu * std::max(1, static_cast<int>(topology.cpus.size())));
  if (options.n_threads < 0 || options.n_threads > most) {
    fail(ErrorCode::kInvalidArgument,
         "-t {}: the number of threads must be between 1 and {} on this machine", options.n_threads,
         most);
  }
  n_threads_ =
      options.n_threads > 0 ? options.n_threads : std::min(topology.n_cores, GGML_MAX_N_THREADS);
  if (!ggml_backend_is_cpu(backend_.get())) return;

  if (options.pin_threads && static_cast<size_t>(n_threads_) <= topology.cpus.size()) {
    cpus_.assign(topology.cpus.begin(), topology.cpus.begin() + n_threads_);
  }
  workers_ = std::make_unique<WorkerPool>(n_threads_, cpus_);
}

void Device::share_out(size_t n, const std::function<void(int thread, size_t thing)>& f) {
  class Shares final : public CpuOp {
   public:
    Shares(size_t n, const std::function<void(int, size_t)>& f) : n_(static_cast<int64_t>(n)), f_(f) {}
    void run(ggml_tensor* /*dst*/, Worker worker) const override {
      const Range mine = share_of(worker, n_);
      for (int64_t i = mine.first; i < mine.end; ++i) f_(worker.index, static_cast<size_t>(i));
    }

   private:
    int64_t n_;
    const std::function<void(int, size_t)>& f_;
  };
  if (!workers_) workers_ = std::make_unique<WorkerPool>(std::min(n_threads_, kMostHelpers), cpus_);
  const Shares shares(n, f);
  const CpuStep step{.op = &shares, .dst = nullptr};
  workers_->run({&step, 1});
}

std::vector<DeviceInfo> Device::list() {
  GgmlLogCapture log;
  std::vector<DeviceInfo> infos;
  for (ggml_backend_dev_t device : usable_devices()) infos.push_back(describe(device));
  return infos;
}

ggml_backend_buffer_type_t Device::default_buffer_type() const {
  return ggml_backend_dev_buffer_type(device_);
}

bool Device::supports(const ggml_tensor* operation) const {
  return ggml_backend_dev_supports_op(device_, operation);
}

bool Device::can_multiply(const ggml_tensor* weight) const {
  if (kernels_ != nullptr) {
    return find_format(*kernels_, weight->type) != nullptr ||
           ggml_get_type_traits_cpu(weight->type)->vec_dot != nullptr;
  }
  constexpr int64_t kTypicalRows = 512;
  ggml_context_ptr context(
      ggml_init({.mem_size = 8 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  ggml_tensor* copy = ggml_dup_tensor(context.get(), weight);
  ggml_tensor* rows = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, weight->ne[0], kTypicalRows);
  ggml_tensor* product = ggml_mul_mat(context.get(), copy, rows);
  // Backends judge an operation by the buffer its weight lies in: an empty one does.
  const ggml_backend_buffer_ptr buffer(ggml_backend_buft_alloc_buffer(default_buffer_type(), 0));
  copy->buffer = buffer.get();
  return supports(product);
}

std::vector<NamedDevice> Device::gpus() const {
  std::vector<NamedDevice> gpus;
  if (!is_gpu(device_)) return gpus;
  gpus.push_back({.raw = device_, .name = info_.name});
  for (ggml_backend_dev_t device : usable_devices()) {
    if (is_choice(options_.name) || device == device_ || !is_gpu(device)) continue;
    gpus.push_back({.raw = device, .name = public_name(device)});
  }
  return gpus;
}

size_t n_free_bytes(ggml_backend_dev_t device) {
  size_t available = 0, total = 0;
  ggml_backend_dev_memory(device, &available, &total);
  return available;
}

size_t Device::n_free_bytes() const {
  return is_host_ ? available_host_memory() : forerun::n_free_bytes(device_);
}

DeviceMemory Device::allocate_zeroed(size_t n_bytes, const std::string& what) const {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  const size_t available = n_free_bytes();
  DeviceMemory memory;
  if (n_bytes <= available && is_host_) {
    map_host_memory(memory, n_bytes);
  } else if (n_bytes <= available) {
    GgmlLogCapture log;
    memory.buffer_.reset(ggml_backend_buft_alloc_buffer(default_buffer_type(), n_bytes));
    if (memory.buffer_) ggml_backend_buffer_clear(memory.buffer_.get(), 0);
  }
  if (!memory.buffer_) {
    fail(ErrorCode::kOutOfMemory, "{} needs {:.1f} GiB but {} has {:.1f} GiB free", what,
         static_cast<double>(n_bytes) / kGiB, info_.name, static_cast<double>(available) / kGiB);
  }
  return memory;
}

DeviceMemory Device::allocate_weights(size_t n_bytes, const std::string& what) const {
  DeviceMemory memory = allocate_zeroed(n_bytes, what);
#ifdef MADV_HUGEPAGE
  if (is_host_) ::madvise(memory.data(), memory.size(), MADV_HUGEPAGE);
#endif
  return memory;
}

DeviceMemory Device::allocate_host(size_t n_bytes, const std::string& what) const {
  DeviceMemory memory;
  if (ggml_backend_buffer_type_t pinned = ggml_backend_dev_host_buffer_type(device_);
      pinned != nullptr) {
    GgmlLogCapture log;
    memory.buffer_.reset(ggml_backend_buft_alloc_buffer(pinned, n_bytes));
  } else {
    map_host_memory(memory, n_bytes);
  }
  if (!memory.buffer_)
    fail(ErrorCode::kOutOfMemory, "not enough memory for {} ({} bytes)", what, n_bytes);
  return memory;
}

void Device::map_host_memory(DeviceMemory& memory, size_t n_bytes) {
  // The system zeroes these pages when they are first touched, so memory that is
  // never used is never taken.
  void* address = ::mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return;
  memory.mapping_ = {address, [n_bytes](void* mapped) { ::munmap(mapped, n_bytes); }};
  memory.buffer_.reset(ggml_backend_cpu_buffer_from_ptr(address, n_bytes));
}

void Device::compute(ggml_cgraph* graph) {
  GgmlLogCapture log;
  const ggml_status status = ggml_backend_graph_compute(backend_.get(), graph);
  if (status != GGML_STATUS_SUCCESS) {
    fail(status == GGML_STATUS_ALLOC_FAILED ? ErrorCode::kOutOfMemory : ErrorCode::kUnsupported,
         "{} failed to compute: {}", info_.name, log.first_error());
  }
}

void Device::upload(ggml_tensor* tensor, std::span<const std::byte> data) {
  ggml_backend_tensor_set_async(backend_.get(), tensor, data.data(), 0, data.size());
}

std::span<const float> Device::read(const ggml_tensor* tensor, size_t n, DeviceMemory& staging) const {
  if (is_host_) return {static_cast<const float*>(tensor->data), n};
  const size_t n_bytes = n * sizeof(float);
  // Such memory takes a millisecond to get, and requests come one by one.
  if (staging.size() < n_bytes)
    staging = allocate_host(std::max(n_bytes, 2 * staging.size()), "reading results");
  const std::span floats(reinterpret_cast<float*>(staging.data()), n);
  read(tensor, floats);
  return floats;
}

void Device::read(const ggml_tensor* tensor, std::span<float> to) {
  ggml_backend_tensor_get(tensor, to.data(), 0, to.size_bytes());
}

}  // namespace forerun
