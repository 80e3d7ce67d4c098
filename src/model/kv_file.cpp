// The file, little-endian:
//   magic "FRKV", u32 version, u64 model fingerprint, u32 cache type, u32 layers,
//   u64 bytes per row of the first layer's keys, u32 tokens, u32 zero,
//   i32 token ids,
//   per layer that has cells of its own: the keys of all tokens in order, then their values,
//   u64 StableHash to which the header, the ids and each block of keys or values were
//   added, one after the other.
#include "model/kv_file.h"

#include <ggml-backend.h>

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "core/error.h"
#include "core/file_version.h"
#include "core/hash.h"
#include "core/mapped_file.h"
#include "core/replace_file.h"

namespace forerun {
namespace {

constexpr char kMagic[4] = {'F', 'R', 'K', 'V'};
constexpr uint32_t kVersion = 1;

struct Header {
  char magic[4];
  uint32_t version;
  uint64_t model_fingerprint;
  uint32_t kv_type;
  uint32_t n_layers;
  uint64_t row_bytes;
  uint32_t n_tokens;
  uint32_t reserved;
};
static_assert(sizeof(Header) == 40);

// Hashes what it writes.
class HashedWriter {
 public:
  explicit HashedWriter(const std::filesystem::path& path) : file_(path) {}

  void write(std::span<const std::byte> bytes) {
    hash_.add(bytes);
    file_.append(bytes);
  }

  void finish() {
    const uint64_t hash = hash_.value();
    file_.append(std::as_bytes(std::span(&hash, 1)));
    file_.finish();
  }

 private:
  ReplacementFile file_;
  StableHash hash_;
};

// Takes pieces off the front of a mapped file and hashes them.
class HashedReader {
 public:
  HashedReader(std::span<const std::byte> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}

  std::span<const std::byte> read(size_t n_bytes) {
    if (n_bytes > bytes_.size()) fail(ErrorCode::kInvalidFile, "{} is truncated; delete it", name_);
    const auto piece = bytes_.first(n_bytes);
    bytes_ = bytes_.subspan(n_bytes);
    hash_.add(piece);
    return piece;
  }

  void check_hash() {
    const uint64_t expected = hash_.value();
    uint64_t stored = 0;
    if (bytes_.size() != sizeof(stored))
      fail(ErrorCode::kInvalidFile, "{} has the wrong length; delete it", name_);
    std::memcpy(&stored, bytes_.data(), sizeof(stored));
    if (stored != expected)
      fail(ErrorCode::kInvalidFile, "{} is damaged: its checksum does not match; delete it", name_);
  }

 private:
  std::span<const std::byte> bytes_;
  std::string name_;
  StableHash hash_;
};

// Calls visit(first cell, first position, count) for each run of consecutive cells.
template <typename Visit>
void for_each_run(std::span<const int32_t> cells, Visit visit) {
  for (size_t begin = 0; begin < cells.size();) {
    size_t end = begin + 1;
    while (end < cells.size() && cells[end] == cells[end - 1] + 1) ++end;
    visit(static_cast<size_t>(cells[begin]), begin, end - begin);
    begin = end;
  }
}

}  // namespace

void KvContents::save(const KvCells& all_cells, SequenceId sequence, std::span<const TokenId> tokens,
                      const std::filesystem::path& path) const {
  const auto cells = all_cells.committed_cells(sequence);
  CHECK(tokens.size() == cells.size());
  Header header{.magic = {},
                .version = kVersion,
                .model_fingerprint = model_fingerprint,
                .kv_type = static_cast<uint32_t>(type),
                .n_layers = static_cast<uint32_t>(tensors.size() / 2),
                .row_bytes = tensors.front()->nb[1],
                .n_tokens = static_cast<uint32_t>(tokens.size()),
                .reserved = 0};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));

  HashedWriter writer(path);
  writer.write(std::as_bytes(std::span(&header, 1)));
  writer.write(std::as_bytes(tokens));
  std::vector<std::byte> rows;
  for (const ggml_tensor* tensor : tensors) {
    const size_t n = tensor->nb[1];
    rows.resize(n * cells.size());
    for_each_run(cells, [&](size_t cell, size_t position, size_t count) {
      ggml_backend_tensor_get(tensor, rows.data() + position * n, cell * n, count * n);
    });
    writer.write(rows);
  }
  writer.finish();
}

std::optional<RestoredText> KvContents::restore(KvCells& cells,
                                                const std::filesystem::path& path) const {
  const MappedFile file(path);
  const std::string name = path.string();

  Header header{};
  HashedReader reader(file.bytes(), name);
  std::memcpy(&header, reader.read(sizeof(header)).data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    fail(ErrorCode::kInvalidFile, "{} is not a saved context", name);
  }
  check_file_version(path, header.version, kVersion);
  if (header.model_fingerprint != model_fingerprint) {
    fail(ErrorCode::kInvalidArgument, "{} was saved with another model; use another file", name);
  }
  if (header.kv_type != static_cast<uint32_t>(type) || header.n_layers != tensors.size() / 2 ||
      header.row_bytes != tensors.front()->nb[1]) {
    fail(ErrorCode::kInvalidArgument, "{} was saved with another cache type than {}; use another file",
         name, to_string(type));
  }

  // The whole file is checked before anything in the cache changes.
  RestoredText restored{};
  const auto token_bytes = reader.read(header.n_tokens * sizeof(TokenId));
  restored.tokens.resize(header.n_tokens);
  std::memcpy(restored.tokens.data(), token_bytes.data(), token_bytes.size());
  std::vector<std::span<const std::byte>> blocks;
  for (const ggml_tensor* tensor : tensors)
    blocks.push_back(reader.read(header.n_tokens * tensor->nb[1]));
  reader.check_hash();

  if (static_cast<int64_t>(header.n_tokens) > cells.n_free()) return std::nullopt;
  restored.sequence = cells.create();
  const int n_tokens = static_cast<int>(header.n_tokens);
  cells.commit(restored.sequence, cells.extend_chain(restored.sequence, n_tokens));
  const auto written = cells.committed_cells(restored.sequence);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const size_t n = tensors[i]->nb[1];
    for_each_run(written, [&](size_t cell, size_t position, size_t count) {
      ggml_backend_tensor_set(tensors[i], blocks[i].data() + position * n, cell * n, count * n);
    });
  }
  return restored;
}

}  // namespace forerun
