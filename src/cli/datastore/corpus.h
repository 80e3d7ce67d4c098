// Files and folders as pieces of text, for a datastore.
//
// A text file is a document, or several if it is long: it is cut at ends of lines. A JSONL
// file has a document in each string of the chosen fields of each line. Folders are read
// with everything below them in the order of names, without hidden files and symbolic
// links. Binary files are skipped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace forerun {

struct CorpusOptions {
  std::vector<std::string> inputs;        // files and folders
  std::vector<std::string> jsonl_fields;  // empty: the files are plain text
  std::vector<std::string> extensions;    // of files in folders, "py" or ".py"; empty: all
};

// How the names of files in folders must end; empty: all count. A folder of JSONL files may
// have others beside them.
std::vector<std::string> wanted_extensions(const CorpusOptions& options);

struct InputFile {
  std::filesystem::path path;
  int64_t n_bytes;
};
// Throws Error if an input does not exist or cannot be read.
std::vector<InputFile> list_inputs(const CorpusOptions& options);

// Reads a file piece by piece. Not thread-safe.
class PieceReader {
 public:
  // Pieces are about this long: work for one thread for a moment.
  static constexpr size_t kPieceBytes = size_t{1} << 20;
  // A line of JSON may be longer, up to this.
  static constexpr size_t kMaxLineBytes = size_t{16} << 20;

  // Throws Error{kIo}.
  PieceReader(std::filesystem::path path, bool whole_lines);

  // The beginning has a NUL byte, which text has not.
  bool is_binary() const { return binary_; }
  // The next piece; nullopt at the end. Throws Error{kIo}.
  std::optional<std::string> next();

 private:
  void fill(size_t n_bytes);
  size_t piece_end() const;

  std::filesystem::path path_;
  bool whole_lines_;
  std::ifstream file_;
  std::string buffer_;  // read but not given out yet
  bool binary_ = false;
};

// What a piece is made of.
struct PieceDocuments {
  std::vector<std::string> documents;  // valid UTF-8
  bool replaced = false;               // bytes that were no UTF-8 became U+FFFD
  int n_bad_lines = 0;                 // that are not JSON
};
PieceDocuments documents_of(const std::string& piece, const std::vector<std::string>& jsonl_fields);

// Equal for pieces that give the same documents.
uint64_t hash_of_piece(const std::string& piece, const std::vector<std::string>& jsonl_fields);

}  // namespace forerun
