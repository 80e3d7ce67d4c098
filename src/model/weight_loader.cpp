#include "model/weight_loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/check.h"
#include "core/cpu_topology.h"
#include "core/error.h"
#include "gguf/ggml_log.h"
#include "model/model_part.h"

namespace forerun {
namespace {

std::string shape_text(const int64_t* shape) {
  std::string text = fmt::format("{}", shape[0]);
  for (int i = 1; i < GGML_MAX_DIMS && shape[i] != 1; ++i) text += fmt::format(" x {}", shape[i]);
  return text;
}

void check_shape(const GgufTensor& tensor, int64_t n0, int64_t n1, int64_t n2 = 1) {
  const int64_t wanted[GGML_MAX_DIMS] = {n0, n1, n2, 1};
  if (!std::equal(wanted, wanted + GGML_MAX_DIMS, tensor.shape)) {
    fail(ErrorCode::kInvalidFile, "tensor {} has shape {} where the metadata asks for {}", tensor.name,
         shape_text(tensor.shape), shape_text(wanted));
  }
}

// Reads one tensor into its buffer, converting it if the target is of another type.
void copy_tensor(const GgufTensor& source, ggml_tensor* target) {
  if (source.type == target->type) {
    ggml_backend_tensor_set(target, source.data, 0, source.n_bytes);
    return;
  }
  CHECK(target->type == GGML_TYPE_F32);
  std::vector<float> converted(static_cast<size_t>(ggml_nelements(target)));
  ggml_get_type_traits(source.type)->to_float(source.data, converted.data(), ggml_nelements(target));
  ggml_backend_tensor_set(target, converted.data(), 0, converted.size() * sizeof(float));
}

}  // namespace

WeightLoader::WeightLoader(const GgufFile& file, const ModelPart& part)
    : file_(file), part_(part), device_(*part.device), gpu_(part.gpu) {
  constexpr size_t kMostConstants = 4;
  // Every tensor may be two halves.
  const size_t n_bytes = (2 * file.tensors().size() + kMostConstants) * ggml_tensor_overhead();
  for (ggml_context_ptr* context : {&mapped_context_, &copied_context_}) {
    context->reset(ggml_init({.mem_size = n_bytes, .mem_buffer = nullptr, .no_alloc = true}));
  }
}

const GgufTensor& WeightLoader::require(const std::string& name) const {
  const GgufTensor* tensor = file_.find_tensor(name);
  if (tensor == nullptr) {
    fail(ErrorCode::kInvalidFile, "{} has no tensor {}", file_.path().string(), name);
  }
  return *tensor;
}

ggml_tensor* WeightLoader::vector(const std::string& name, int64_t n) {
  const GgufTensor& source = require(name);
  check_shape(source, n, 1);
  return numbers(source);
}

ggml_tensor* WeightLoader::numbers(const GgufTensor& source) {
  if (source.type != GGML_TYPE_F32 && ggml_get_type_traits(source.type)->to_float == nullptr) {
    fail(ErrorCode::kUnsupported, "tensor {} has type {}, which forerun cannot read as numbers",
         source.name, ggml_type_name(source.type));
  }
  if (!part_.needs(source)) return ggml_new_tensor_1d(mapped_context_.get(), GGML_TYPE_F32, 1);
  return declare(source, GGML_TYPE_F32);
}

ggml_tensor* WeightLoader::optional_vector(const std::string& name, int64_t n) {
  return has(name) ? vector(name, n) : nullptr;
}

int64_t WeightLoader::n_rows(const std::string& name) const {
  const GgufTensor* tensor = file_.find_tensor(name);
  return tensor != nullptr ? tensor->shape[1] : 0;
}

Linear WeightLoader::half(const std::string& name, int which, int64_t n_in, int64_t n_out) {
  const GgufTensor& whole = require(name);
  check_shape(whole, n_in, 2 * n_out);
  GgufTensor& part = views_.emplace_back(whole);
  part.shape[1] = n_out;
  part.n_bytes = whole.n_bytes / 2;
  part.offset += static_cast<size_t>(which) * part.n_bytes;
  part.data += static_cast<size_t>(which) * part.n_bytes;
  return matrix_of(part, n_in, n_out);
}

Linear WeightLoader::stack(const std::string& name, int64_t n_in, int64_t n_out, int64_t n) {
  const GgufTensor& source = require(name + ".weight");
  check_shape(source, n_in, n_out, n);
  GgufTensor& rows = views_.emplace_back(source);
  if (device_.kernels() != nullptr) {
    rows.shape[1] = n_out * n;
    rows.shape[2] = 1;
  }
  Linear linear = matrix_of(rows, n_in, rows.shape[1], n);
  if (has(name + ".bias")) {
    const GgufTensor& bias = require(name + ".bias");
    check_shape(bias, n_out, n);
    linear.bias = numbers(bias);
  }
  return linear;
}

ggml_tensor* WeightLoader::constant(float value) {
  ggml_tensor*& tensor = constants_[value];
  if (tensor == nullptr) tensor = ggml_new_tensor_1d(copied_context_.get(), GGML_TYPE_F32, 1);
  return tensor;
}

Linear WeightLoader::matrix(const std::string& name, int64_t n_in, int64_t n_out) {
  const GgufTensor& source = require(name);
  check_shape(source, n_in, n_out);
  return matrix_of(source, n_in, n_out);
}

Linear WeightLoader::matrix_of(const GgufTensor& source, int64_t n_in, int64_t n_out, int64_t n) {
  const auto without_data = [&] {
    return ggml_new_tensor_2d(mapped_context_.get(), source.type, n_in, n_out);
  };
  if (!part_.needs(source)) return {.weight = without_data()};
  ggml_context_ptr scratch(
      ggml_init({.mem_size = ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  if (!device_.can_multiply(ggml_new_tensor_2d(scratch.get(), source.type, n_in, n_out))) {
    fail(ErrorCode::kUnsupported, "tensor {} has type {}, which {} cannot multiply", source.name,
         ggml_type_name(source.type), device_.info().name);
  }
  if (gpu_ != nullptr) {
    gpu_sources_.push_back(&source);
    const auto& matrix = gpu_matrices_.emplace_back(std::make_unique<GpuMatrix>(
        GpuMatrix{.type = source.type, .n_in = n_in, .n_out = n_out, .n = n}));
    return {.weight = without_data(), .gpu = matrix.get()};
  }
  if (device_.kernels() == nullptr) return {.weight = declare(source, source.type)};

  PackedMatrix& matrix = *matrices_.emplace_back(
      std::make_unique<PackedMatrix>(describe_matrix(*device_.kernels(), source.type, n_in, n_out)));
  if (matrix.format != nullptr) {
    packed_.push_back({.source = &source, .target = &matrix});
    return {.weight = without_data(), .packed = &matrix};
  }
  ggml_tensor* tensor = declare(source, source.type);
  plain_.emplace_back(&matrix, tensor);
  return {.weight = tensor, .packed = &matrix};
}

Linear WeightLoader::linear(const std::string& name, int64_t n_in, int64_t n_out) {
  return with_scale_and_bias(matrix(name + ".weight", n_in, n_out), name, n_out);
}

Linear WeightLoader::decisive_linear(const std::string& name, int64_t n_in, int64_t n_out) {
  return with_scale_and_bias(decisive_matrix(name + ".weight", n_in, n_out), name, n_out);
}

Linear WeightLoader::decisive_matrix(const std::string& name, int64_t n_in, int64_t n_out) {
  if (gpu_ == nullptr) return matrix(name, n_in, n_out);
  const GgufTensor& source = require(name);
  check_shape(source, n_in, n_out);
  return {.weight = numbers(source)};
}

Linear WeightLoader::with_scale_and_bias(Linear linear, const std::string& name, int64_t n_out) {
  linear.scale = optional_vector(name + ".scale", 1);
  linear.bias = optional_vector(name + ".bias", n_out);
  return linear;
}

ggml_tensor* WeightLoader::declare(const GgufTensor& source, ggml_type type) {
  // ggml's CPU kernels want tensors aligned as GGUF files align them; a file that
  // does not is copied.
  const bool aligned = reinterpret_cast<uintptr_t>(source.data) % GGML_MEM_ALIGN == 0;
  const bool in_place = device_.is_host() && type == source.type && aligned;
  ggml_tensor* tensor = ggml_new_tensor_3d((in_place ? mapped_context_ : copied_context_).get(), type,
                                           source.shape[0], source.shape[1], source.shape[2]);
  ggml_set_name(tensor, source.name.c_str());
  (in_place ? mapped_ : copied_).push_back({.source = &source, .target = tensor});
  return tensor;
}

size_t WeightLoader::n_bytes() const {
  size_t n = 0;
  for (const Copy& copy : copied_) n += copy.source->n_bytes;
  for (const Packing& packing : packed_) n += packing.source->n_bytes;
  for (const GgufTensor* source : gpu_sources_) n += source->n_bytes;
  return n;
}

WeightStorage WeightLoader::load(const std::function<void(double)>& progress) {
  GgmlLogCapture log;
  WeightStorage storage;
  map_in_place(storage);
  std::vector<Job> jobs;
  allocate_copies(storage);
  add_copy_jobs(jobs);
  add_pack_jobs(storage, jobs);
  add_gpu_jobs(storage, jobs);
  run_all(std::move(jobs), progress);
  for (const auto& [matrix, tensor] : plain_) {
    matrix->data = static_cast<const std::byte*>(tensor->data);
  }
  storage.contexts.push_back(std::move(copied_context_));
  storage.contexts.push_back(std::move(mapped_context_));
  storage.matrices = std::move(matrices_);
  storage.gpu_matrices = std::move(gpu_matrices_);
  return storage;
}

void WeightLoader::allocate_copies(WeightStorage& storage) {
  if (copied_.empty() && constants_.empty()) return;
  ggml_backend_buffer_ptr buffer(
      ggml_backend_alloc_ctx_tensors_from_buft(copied_context_.get(), device_.default_buffer_type()));
  if (!buffer) {
    fail(ErrorCode::kOutOfMemory, "not enough memory on {} for the weights of {} ({:.1f} GB)",
         device_.info().name, file_.path().string(), static_cast<double>(n_bytes()) / 1e9);
  }
  ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  storage.buffers.push_back(std::move(buffer));
  for (const auto& [value, tensor] : constants_)
    ggml_backend_tensor_set(tensor, &value, 0, sizeof value);
}

void WeightLoader::add_copy_jobs(std::vector<Job>& jobs) const {
  for (const Copy& copy : copied_) {
    jobs.push_back({.source = copy.source, .offset = 0, .n_bytes = copy.source->n_bytes, .run = [copy] {
                      copy_tensor(*copy.source, copy.target);
                    }});
  }
}

void WeightLoader::add_pack_jobs(WeightStorage& storage, std::vector<Job>& jobs) const {
  constexpr size_t kAlignment = 64;
  constexpr int64_t kJobBytes = 2 << 20;
  size_t n_bytes = 0;
  for (const Packing& packing : packed_) n_bytes += GGML_PAD(packing.target->n_bytes(), kAlignment);
  if (n_bytes == 0) return;
  storage.packed = device_.allocate_weights(n_bytes, "the weights of " + file_.path().string());
  std::byte* next = storage.packed.data();
  for (const auto& [source, matrix] : packed_) {
    matrix->data = next;
    const auto row_bytes = static_cast<int64_t>(ggml_row_size(matrix->type, matrix->n_in));
    const int64_t n_tiles = std::max<int64_t>(1, kJobBytes / (row_bytes * matrix->lanes));
    for (int64_t first = 0; first < matrix->n_tiles(); first += n_tiles) {
      const int64_t end = std::min(first + n_tiles, matrix->n_tiles());
      const int64_t first_row = first * matrix->lanes;
      const int64_t end_row = std::min(end * matrix->lanes, matrix->n_out);
      jobs.push_back({.source = source,
                      .offset = static_cast<size_t>(first_row * row_bytes),
                      .n_bytes = static_cast<size_t>((end_row - first_row) * row_bytes),
                      .run = [from = source->data, to = matrix, first, end, next] {
                        to->pack(from, first, end, next);
                      }});
    }
    next += GGML_PAD(matrix->n_bytes(), kAlignment);
  }
}

// One behind the other, as they were declared: neighbours may be multiplied with together.
void WeightLoader::add_gpu_jobs(WeightStorage& storage, std::vector<Job>& jobs) const {
  if (gpu_matrices_.empty()) return;
  size_t n_bytes = 0;
  for (const auto& matrix : gpu_matrices_) n_bytes += gpu_->packed_bytes(*matrix);
  storage.packed = device_.allocate_zeroed(n_bytes, "the weights of " + file_.path().string());
  std::byte* next = storage.packed.data();
  for (size_t i = 0; i < gpu_matrices_.size(); ++i) {
    GpuMatrix& matrix = *gpu_matrices_[i];
    const GgufTensor* source = gpu_sources_[i];
    matrix.data = next;
    next += gpu_->packed_bytes(matrix);
    jobs.push_back(
        {.source = source, .offset = 0, .n_bytes = source->n_bytes, .run = [this, source, &matrix] {
           gpu_->pack(source->data, matrix);
         }});
  }
}

void WeightLoader::map_in_place(WeightStorage& storage) {
  std::vector<ggml_backend_buffer_t> part_buffers;
  for (const MappedFile& part : file_.parts()) {
    // ggml takes a writable pointer; nothing ever writes to weights.
    void* base = const_cast<std::byte*>(part.bytes().data());
    storage.buffers.emplace_back(ggml_backend_cpu_buffer_from_ptr(base, part.bytes().size()));
    ggml_backend_buffer_set_usage(storage.buffers.back().get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    part_buffers.push_back(storage.buffers.back().get());
  }
  for (const Copy& mapped : mapped_) {
    const ggml_status status = ggml_backend_tensor_alloc(
        part_buffers[mapped.source->part], mapped.target, const_cast<std::byte*>(mapped.source->data));
    CHECK(status == GGML_STATUS_SUCCESS);
  }
}

void WeightLoader::run_all(std::vector<Job> jobs, const std::function<void(double)>& progress) const {
  if (jobs.empty()) return;
  // Largest first, so that no thread is left with a big one at the end.
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const Job& a, const Job& b) { return a.n_bytes > b.n_bytes; });
  size_t n_total = 0;
  for (const Job& job : jobs) n_total += job.n_bytes;

  std::atomic<size_t> next = 0;
  std::atomic<size_t> n_done = 0;
  std::mutex mutex;
  std::condition_variable finished;
  int n_running = 0;
  std::exception_ptr failure;
  const auto work = [&] {
    unpin_current_thread();  // a pinned parent would keep all of us on one CPU
    std::exception_ptr mine;
    try {
      for (size_t i = next++; i < jobs.size(); i = next++) {
        const Job& job = jobs[i];
        job.run();
        file_.parts()[job.source->part].release(job.source->offset + job.offset, job.n_bytes);
        n_done += job.n_bytes;
      }
    } catch (...) {
      mine = std::current_exception();
      next = jobs.size();
    }
    const std::lock_guard lock(mutex);
    if (mine) failure = mine;
    --n_running;
    finished.notify_one();
  };
  std::vector<std::jthread> threads;  // joined at the end of this function, however it ends
  std::unique_lock lock(mutex);
  for (int i = 0; i < device_.n_threads(); ++i) {
    try {
      threads.emplace_back(work);
      ++n_running;
    } catch (const std::system_error&) {
      break;  // the system allows no more: those there are will do
    }
  }
  if (threads.empty())
    fail(ErrorCode::kOutOfMemory, "the system does not allow another thread to load weights with");
  using namespace std::chrono_literals;
  while (!finished.wait_for(lock, 100ms, [&] { return n_running == 0; })) {
    if (progress) progress(static_cast<double>(n_done.load()) / static_cast<double>(n_total));
  }
  if (failure) std::rethrow_exception(failure);
  if (progress) progress(1.0);
}

}  // namespace forerun
