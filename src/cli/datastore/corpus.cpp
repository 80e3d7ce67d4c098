#include "cli/datastore/corpus.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "core/replace_file.h"
#include "text/utf8.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

// As much as tells text from other files.
constexpr size_t kProbeBytes = 8192;

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

bool has_extension(const fs::path& path, const std::vector<std::string>& extensions) {
  if (extensions.empty()) return true;
  const std::string own = path.extension().string();
  return std::any_of(extensions.begin(), extensions.end(), [&](const std::string& wanted) {
    return own == (wanted.starts_with('.') ? wanted : "." + wanted);
  });
}

void list_folder(const fs::path& folder, const std::vector<std::string>& extensions,
                 std::vector<InputFile>& files) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  constexpr auto kOptions = fs::directory_options::skip_permission_denied;
  for (fs::directory_iterator entry(folder, kOptions, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    if (!is_hidden(entry->path()) && !entry->is_symlink(gone)) entries.push_back(*entry);
  }
  if (error) fail_io("read", folder, error.value());
  std::sort(entries.begin(), entries.end());
  for (const auto& entry : entries) {
    std::error_code gone;
    if (entry.is_directory(gone)) {
      list_folder(entry.path(), extensions, files);
    } else if (entry.is_regular_file(gone) && has_extension(entry.path(), extensions)) {
      files.push_back({entry.path(), static_cast<int64_t>(entry.file_size(gone))});
    }
  }
}

// The strings in a value: itself, or those of a list.
void collect_strings(const nlohmann::json& value, std::vector<std::string>& strings) {
  if (value.is_string()) strings.push_back(value.get<std::string>());
  if (value.is_array()) {
    for (const auto& element : value) collect_strings(element, strings);
  }
}

std::string valid_utf8(std::string text, bool& replaced) {
  if (is_valid_utf8(text)) return text;
  replaced = true;
  Utf8Stream stream;
  std::string valid = stream.push(text);
  return valid + stream.flush();
}

void add_line(std::string_view line, const std::vector<std::string>& fields, PieceDocuments& piece) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    ++piece.n_bad_lines;
    return;
  }
  for (const std::string& field : fields) {
    if (const auto value = object.find(field); value != object.end()) {
      collect_strings(*value, piece.documents);
    }
  }
}

}  // namespace

std::vector<std::string> wanted_extensions(const CorpusOptions& options) {
  if (options.extensions.empty() && !options.jsonl_fields.empty()) return {"jsonl"};
  return options.extensions;
}

std::vector<InputFile> list_inputs(const CorpusOptions& options) {
  const auto extensions = wanted_extensions(options);
  std::vector<InputFile> files;
  for (const std::string& input : options.inputs) {
    std::error_code error;
    const auto status = fs::status(input, error);
    if (fs::is_directory(status)) {
      list_folder(input, extensions, files);
    } else if (fs::is_regular_file(status)) {
      files.push_back({input, static_cast<int64_t>(fs::file_size(input, error))});
    } else if (fs::exists(status)) {
      fail(ErrorCode::kInvalidArgument, "{} is neither a file nor a folder", input);
    } else {
      fail(ErrorCode::kNotFound, "there is no file or folder {}", input);
    }
  }
  return files;
}

PieceReader::PieceReader(fs::path path, bool whole_lines)
    : path_(std::move(path)), whole_lines_(whole_lines), file_(path_, std::ios::binary) {
  if (!file_) fail(ErrorCode::kIo, "cannot open {}: {}", path_.string(), std::strerror(errno));
  fill(kPieceBytes);
  binary_ = std::string_view(buffer_).substr(0, kProbeBytes).find('\0') != std::string_view::npos;
}

void PieceReader::fill(size_t n_bytes) {
  if (buffer_.size() >= n_bytes || !file_) return;
  const size_t begin = buffer_.size();
  buffer_.resize(n_bytes);
  file_.read(buffer_.data() + begin, static_cast<std::streamsize>(n_bytes - begin));
  buffer_.resize(begin + static_cast<size_t>(file_.gcount()));
  if (file_.bad()) fail(ErrorCode::kIo, "cannot read {}: {}", path_.string(), std::strerror(errno));
}

size_t PieceReader::piece_end() const {
  if (!file_) return buffer_.size();  // the rest of the file
  const size_t line_end = buffer_.rfind('\n');
  if (line_end != std::string::npos) return line_end + 1;
  // A very long line: before a byte that begins a character.
  size_t end = buffer_.size();
  while (end > buffer_.size() - 4 && (static_cast<unsigned char>(buffer_[end - 1]) & 0xC0) == 0x80)
    --end;
  return std::max<size_t>(end - 1, 1);
}

std::optional<std::string> PieceReader::next() {
  fill(kPieceBytes);
  if (whole_lines_) {
    for (size_t size = kPieceBytes; file_ && size < kMaxLineBytes; size *= 2) {
      if (buffer_.find('\n') != std::string::npos) break;
      fill(2 * size);
    }
  }
  if (buffer_.empty()) return std::nullopt;
  const size_t end = piece_end();
  std::string piece = buffer_.substr(0, end);
  buffer_.erase(0, end);
  return piece;
}

PieceDocuments documents_of(const std::string& piece, const std::vector<std::string>& jsonl_fields) {
  PieceDocuments result;
  if (jsonl_fields.empty()) {
    result.documents.push_back(valid_utf8(piece, result.replaced));
    return result;
  }
  const std::string text = valid_utf8(piece, result.replaced);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    add_line(std::string_view(text).substr(begin, end - begin), jsonl_fields, result);
    begin = end + 1;
  }
  return result;
}

uint64_t hash_of_piece(const std::string& piece, const std::vector<std::string>& jsonl_fields) {
  StableHash hash;
  for (const std::string& field : jsonl_fields) hash.add(field);
  hash.add(std::string_view(piece));
  return hash.value();
}

}  // namespace forerun
