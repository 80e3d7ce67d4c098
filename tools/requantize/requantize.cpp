#include "requantize.h"

#include <ggml-cpp.h>
#include <gguf.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "gguf/gguf_file.h"

namespace forerun {
namespace {

struct FileCloser {
  void operator()(FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<FILE, FileCloser>;

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

// ggml has activations-only types (Q8_1, Q8_K) and integers, which no weight uses.
bool is_weight_type(ggml_type type) {
  switch (type) {
    case GGML_TYPE_Q8_1:
    case GGML_TYPE_Q8_K:
    case GGML_TYPE_F64:
    case GGML_TYPE_I8:
    case GGML_TYPE_I16:
    case GGML_TYPE_I32:
    case GGML_TYPE_I64: return false;
    default: return ggml_blck_size(type) > 0;
  }
}

int64_t n_rows(const GgufTensor& tensor) {
  return tensor.shape[1] * tensor.shape[2] * tensor.shape[3];
}

bool is_head(const GgufTensor& tensor) {
  return tensor.name == "token_embd.weight" || tensor.name == "output.weight";
}

// What chooses experts is small and decides much: every converter leaves it as it is.
bool is_router(const GgufTensor& tensor) {
  return tensor.name.find(".ffn_gate_inp") != tensor.name.npos;
}

ggml_type result_type(const GgufTensor& tensor, const RequantizeOptions& options) {
  const bool is_matrix = n_rows(tensor) > 1 && !tensor.name.ends_with(".bias");  // experts have several
  if (!is_matrix || is_router(tensor) || (options.keep_head && is_head(tensor))) return tensor.type;
  return options.type;
}

void check_convertible(const GgufTensor& tensor, ggml_type type) {
  if (tensor.type == type) return;
  if (!is_weight_type(tensor.type)) {
    fail(ErrorCode::kUnsupported, "tensor {} has type {}, which holds no weights", tensor.name,
         ggml_type_name(tensor.type));
  }
  if (tensor.shape[0] % ggml_blck_size(type) != 0) {
    fail(ErrorCode::kInvalidArgument,
         "tensor {} has rows of {} values, and {} needs a multiple of {}; choose another type",
         tensor.name, tensor.shape[0], ggml_type_name(type), ggml_blck_size(type));
  }
}

std::vector<float> to_float(const GgufTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape[0] * n_rows(tensor)));
  if (tensor.type == GGML_TYPE_F32) {
    std::copy_n(reinterpret_cast<const float*>(tensor.data), values.size(), values.data());
  } else {
    ggml_get_type_traits(tensor.type)
        ->to_float(tensor.data, values.data(), static_cast<int64_t>(values.size()));
  }
  return values;
}

std::vector<std::byte> convert(const GgufTensor& tensor, ggml_type type) {
  const std::vector<float> values = to_float(tensor);
  const int64_t row_length = tensor.shape[0];
  std::vector<std::byte> result(ggml_row_size(type, row_length) * static_cast<size_t>(n_rows(tensor)));
  const std::vector<float> importance(static_cast<size_t>(row_length), 1.0F);
  ggml_quantize_chunk(type, values.data(), result.data(), 0, n_rows(tensor), row_length,
                      ggml_quantize_requires_imatrix(type) ? importance.data() : nullptr);
  return result;
}

// The keys of `in` and its tensors with their new types.
gguf_context_ptr make_header(const GgufFile& in, const RequantizeOptions& options) {
  gguf_context_ptr header(gguf_init_empty());
  gguf_set_kv(header.get(), in.metadata().raw());
  for (const char* key : {"split.no", "split.count", "split.tensors.count", "general.file_type"}) {
    gguf_remove_key(header.get(), key);
  }
  gguf_set_val_u32(header.get(), "general.quantization_version", GGML_QNT_VERSION);

  const ggml_init_params params{
      .mem_size = in.tensors().size() * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true};
  const ggml_context_ptr tensors(ggml_init(params));
  for (const GgufTensor& tensor : in.tensors()) {
    const ggml_type type = result_type(tensor, options);
    check_convertible(tensor, type);
    int n_dims = GGML_MAX_DIMS;
    while (n_dims > 1 && tensor.shape[n_dims - 1] == 1) --n_dims;
    ggml_tensor* info = ggml_new_tensor(tensors.get(), type, n_dims, tensor.shape);
    ggml_set_name(info, tensor.name.c_str());
    gguf_add_tensor(header.get(), info);
  }
  return header;
}

void append(FILE* file, std::span<const std::byte> bytes, size_t alignment) {
  static constexpr std::byte kZeros[4096] = {};
  bool ok = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  for (size_t left = (alignment - bytes.size() % alignment) % alignment; ok && left > 0;) {
    const size_t n = std::min(left, sizeof kZeros);
    ok = std::fwrite(kZeros, 1, n, file) == n;
    left -= n;
  }
  if (!ok) throw std::system_error(errno, std::generic_category());
}

void write(const GgufFile& in, const gguf_context* header, FILE* file) {
  if (!gguf_write_to_file_ptr(header, file, /*only_meta=*/true)) {
    throw std::system_error(errno, std::generic_category());
  }
  const size_t alignment = gguf_get_alignment(header);
  for (size_t i = 0; i < in.tensors().size(); ++i) {
    const GgufTensor& tensor = in.tensors()[i];
    const ggml_type type = gguf_get_tensor_type(header, static_cast<int64_t>(i));
    if (type == tensor.type) {
      append(file, {tensor.data, tensor.n_bytes}, alignment);
    } else {
      append(file, convert(tensor, type), alignment);
    }
    in.parts()[tensor.part].release(tensor.offset, tensor.n_bytes);
  }
  if (std::fflush(file) != 0) throw std::system_error(errno, std::generic_category());
}

// Only what we made: a device or a pipe given as output stays.
void remove_partial(const std::filesystem::path& path) {
  std::error_code ec;
  if (std::filesystem::is_regular_file(path, ec)) std::filesystem::remove(path, ec);
}

}  // namespace

ggml_type parse_weight_type(std::string_view name) {
  const std::string wanted = lower_case(name);
  std::string known;
  for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
    const auto type = static_cast<ggml_type>(i);
    if (!is_weight_type(type)) continue;
    const std::string candidate = lower_case(ggml_type_name(type));
    if (candidate == wanted) return type;
    known += (known.empty() ? "" : ", ") + candidate;
  }
  fail(ErrorCode::kInvalidArgument, "no weight type '{}'; there are {}", name, known);
}

void requantize(const std::filesystem::path& in_path, const std::filesystem::path& out_path,
                const RequantizeOptions& options) {
  const GgufFile in = GgufFile::open(in_path);
  std::error_code ec;
  if (std::filesystem::equivalent(in_path, out_path, ec)) {
    fail(ErrorCode::kInvalidArgument, "{} cannot be both input and output", in_path.string());
  }
  const gguf_context_ptr header = make_header(in, options);
  const FilePtr file(std::fopen(out_path.c_str(), "wb"));
  if (file == nullptr) {
    fail(ErrorCode::kIo, "cannot write {}: {}", out_path.string(),
         std::generic_category().message(errno));
  }
  try {
    write(in, header.get(), file.get());
  } catch (const std::system_error& error) {
    remove_partial(out_path);
    fail(ErrorCode::kIo, "cannot write {}: {}", out_path.string(), error.code().message());
  } catch (...) {
    remove_partial(out_path);
    throw;
  }
}

}  // namespace forerun
