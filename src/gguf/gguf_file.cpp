#include "gguf/gguf_file.h"

#include <gguf.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <span>

#include "core/error.h"
#include "gguf/ggml_log.h"

namespace forerun {
namespace {

constexpr int64_t kMaxParts = 1000;

void check_openable(const std::filesystem::path& path) {
  std::error_code ec;
  const auto status = std::filesystem::status(path, ec);
  if (!std::filesystem::exists(status)) fail(ErrorCode::kNotFound, "no such file: {}", path.string());
  if (std::filesystem::is_directory(status)) {
    fail(ErrorCode::kInvalidFile, "{} is a directory; give the .gguf file inside it", path.string());
  }
}

// Of a file that was refused: because it is newer than we are?
void check_gguf_version(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  constexpr size_t kOffset = 4;
  uint32_t version = 0;
  if (bytes.size() < kOffset + sizeof(version)) return;
  std::memcpy(&version, bytes.data() + kOffset, sizeof(version));
  const bool is_big_endian = (version & 0xFFFF) == 0;
  if (is_big_endian || version <= GGUF_VERSION) return;
  fail(
      ErrorCode::kUnsupported,
      "{} was made for a newer version of forerun: it is of GGUF version {} and this one reads up to {}",
      path.string(), version, GGUF_VERSION);
}

// The path of part `index` (from 0) of a split whose first part is `first`.
std::filesystem::path part_path(const std::filesystem::path& first, int64_t index, int64_t count) {
  const std::string name = first.filename().string();
  const std::string suffix = fmt::format("-{:05d}-of-{:05d}.gguf", 1, count);
  if (!name.ends_with(suffix)) {
    fail(ErrorCode::kInvalidFile,
         "{} is part of a model split into {} files; its name should end in '{}'", first.string(), count,
         suffix);
  }
  const std::string stem = name.substr(0, name.size() - suffix.size());
  return first.parent_path() / fmt::format("{}-{:05d}-of-{:05d}.gguf", stem, index + 1, count);
}

}  // namespace

GgufFile GgufFile::open(const std::filesystem::path& path) {
  GgufFile file;
  file.path_ = path;
  file.add_part(path);

  const GgufMetadata metadata = file.metadata();
  const int64_t n_parts = metadata.get_int("split.count").value_or(1);
  if (n_parts > 1) {
    if (n_parts > kMaxParts) {
      fail(ErrorCode::kInvalidFile, "{}: split.count of {} is too large", path.string(), n_parts);
    }
    if (metadata.get_int("split.no").value_or(-1) != 0) {
      fail(ErrorCode::kInvalidFile,
           "{} is not the first part of its split model; open the one ending in '-00001-of-{:05d}.gguf'",
           path.string(), n_parts);
    }
    for (int64_t i = 1; i < n_parts; ++i) {
      const auto part = part_path(path, i, n_parts);
      file.add_part(part);
      if (GgufMetadata(file.contexts_.back().get()).get_int("split.no").value_or(-1) != i) {
        fail(ErrorCode::kInvalidFile, "{} is not part {} of its split model", part.string(), i + 1);
      }
    }
    const auto n_tensors = metadata.get_int("split.tensors.count");
    if (n_tensors && *n_tensors != static_cast<int64_t>(file.tensors_.size())) {
      fail(ErrorCode::kInvalidFile, "{}: {} tensors expected in its parts, {} found", path.string(),
           *n_tensors, file.tensors_.size());
    }
  }
  return file;
}

void GgufFile::add_part(const std::filesystem::path& path) {
  check_openable(path);
  MappedFile mapped(path);

  GgmlLogCapture log;
  ggml_context* raw_tensors = nullptr;
  const gguf_init_params params{.no_alloc = true, .ctx = &raw_tensors};
  gguf_context_ptr gguf(gguf_init_from_file(path.c_str(), params));
  const ggml_context_ptr tensors(raw_tensors);
  if (gguf == nullptr) {
    const bool has_magic =
        mapped.bytes().size() >= 4 && std::memcmp(mapped.bytes().data(), "GGUF", 4) == 0;
    if (!has_magic) fail(ErrorCode::kInvalidFile, "{} is not a GGUF file", path.string());
    check_gguf_version(mapped.bytes(), path);
    fail(ErrorCode::kInvalidFile, "{} is damaged or truncated: {}", path.string(), log.first_error());
  }

  const size_t data_offset = gguf_get_data_offset(gguf.get());
  const size_t part = parts_.size();
  for (int64_t i = 0; i < gguf_get_n_tensors(gguf.get()); ++i) {
    const std::string name = gguf_get_tensor_name(gguf.get(), i);
    const ggml_tensor* info = ggml_get_tensor(tensors.get(), name.c_str());
    const size_t offset = data_offset + gguf_get_tensor_offset(gguf.get(), i);
    const size_t n_bytes = ggml_nbytes(info);
    const size_t file_size = mapped.bytes().size();
    if (offset < data_offset || offset > file_size || n_bytes > file_size - offset) {
      fail(ErrorCode::kInvalidFile,
           "{} is truncated: tensor {} ends at byte {} of {}; download the file again", path.string(),
           name, offset + n_bytes, file_size);
    }
    GgufTensor tensor{.name = name,
                      .type = info->type,
                      .shape = {info->ne[0], info->ne[1], info->ne[2], info->ne[3]},
                      .data = mapped.bytes().data() + offset,
                      .n_bytes = n_bytes,
                      .part = part,
                      .offset = offset};
    if (!tensor_index_.emplace(name, tensors_.size()).second) {
      fail(ErrorCode::kInvalidFile, "{}: tensor {} appears twice", path.string(), name);
    }
    tensors_.push_back(std::move(tensor));
  }
  parts_.push_back(std::move(mapped));
  contexts_.push_back(std::move(gguf));
}

const GgufTensor* GgufFile::find_tensor(const std::string& name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

size_t GgufFile::n_bytes() const {
  size_t total = 0;
  for (const MappedFile& part : parts_) total += part.bytes().size();
  return total;
}

}  // namespace forerun
