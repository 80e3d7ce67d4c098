// An immutable text of tokens with an index that finds every place where some tokens
// occur.
//
// The text is a list of documents, each followed by a separator, which matches nothing.
// The index lists the places of all tokens (not of separators) in the order of what
// stands there, compared token by token to a depth of kOrderDepth or to the end of the
// document, whichever comes first; a text that ends comes before one that goes on. Places
// that are equal that far are in the order of the text, the latest first. A query of at
// most kOrderDepth tokens is therefore one range of the index.
//
// A segment lives in a file, mapped into memory (segment_file.h says what is in it), or in
// memory alone. Const and safe to use from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/mapped_file.h"
#include "retrieval/segment_directory.h"
#include "retrieval/segment_text.h"

namespace forerun {

class Segment {
 public:
  static constexpr int kOrderDepth = 32;
  static constexpr int64_t kMaxTokens = int64_t{512} << 20;
  // Stands behind every document. Never a token of a vocabulary.
  static constexpr TokenId kSeparator = SegmentText::kSeparator;

  // What a file says of itself.
  struct Identity {
    uint64_t tokenizer;  // Vocabulary::fingerprint()
    int n_vocab;
    friend bool operator==(const Identity&, const Identity&) = default;
  };

  // Gets the share of the work that is done, on the thread that called build(); may be
  // empty. Returning false gives up.
  using Progress = std::function<bool(double)>;

  // Indexes `text`, in which each document ends with kSeparator (the last one too) and
  // every other token lies in [0, n_vocab). At most kMaxTokens; may be empty. Works with
  // `n_threads` threads, which have the caller's priority. nullptr: given up.
  static std::shared_ptr<const Segment> build(std::vector<TokenId> text, const Identity& identity,
                                              int n_threads, const Progress& progress = {});

  // Maps a file. Checks everything but the contents of text and index (verify() does);
  // damage there makes answers wrong but harms nothing else.
  // Throws Error: {kInvalidFile} not a segment, damaged; {kUnsupported} of a newer version;
  // {kNotFound}.
  static std::shared_ptr<const Segment> open(const std::filesystem::path& path);

  // Writes to a temporary file beside `path`, syncs it and renames it: at every moment
  // there is either no file or a whole one. Throws Error{kIo}, leaving nothing behind.
  void write(const std::filesystem::path& path) const;

  // Reads everything and compares it with its checksums; checks that the index is a
  // permutation in order. Throws Error{kInvalidFile}.
  void verify() const;

  const Identity& identity() const { return identity_; }
  int64_t n_tokens() const { return text_.size(); }  // separators included
  int64_t n_documents() const { return n_documents_; }
  int64_t n_entries() const { return static_cast<int64_t>(order_.size()); }  // of the index
  int64_t n_bytes() const;                                                   // of memory or of the file

  // kSeparator at the end of documents.
  TokenId token(int64_t place) const { return text_.token(place); }
  // Copies the tokens from `place` on until the end of the document or of `out`; how many.
  int copy(int64_t place, std::span<TokenId> out) const;

  // Ranks [begin, end) of the index.
  struct Range {
    int64_t begin;
    int64_t end;
    int64_t size() const { return end - begin; }
    friend bool operator==(const Range&, const Range&) = default;
  };
  // Where `tokens` (1 to kOrderDepth of them) occur; empty if nowhere. To ask several
  // segments at once, which is faster, see segment_search.h.
  Range find(std::span<const TokenId> tokens) const;
  // The place in the text of an entry of the index.
  int64_t place(int64_t rank) const {
    // Never outside the text, whatever a damaged file says.
    return std::min<int64_t>(order_[static_cast<size_t>(rank)], text_.size() - 1);
  }

  // nullptr: it lives in memory alone.
  const MappedFile* file() const { return file_ ? &*file_ : nullptr; }

  // The parts, for those who search and store them.
  const SegmentText& text() const { return text_; }
  std::span<const uint32_t> order() const { return order_; }
  const SegmentDirectory& directory() const { return directory_; }

  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

 private:
  Segment() = default;

  Identity identity_{};
  int64_t n_documents_ = 0;
  // Views of what is below.
  SegmentText text_;
  std::span<const uint32_t> order_;
  SegmentDirectory directory_;

  // Where the parts live: in the file, or here.
  std::optional<MappedFile> file_;
  std::filesystem::path path_;
  std::vector<uint16_t> narrow_;
  std::vector<TokenId> wide_;
  std::vector<uint32_t> owned_order_;
  std::vector<uint64_t> owned_directory_;
};

// Segments that are searched together: a snapshot, newest last. Several stores are
// concatenated by whoever searches them.
using SegmentList = std::vector<std::shared_ptr<const Segment>>;

// The segments to search now; may be empty, as may the list.
using SegmentSource = std::function<std::shared_ptr<const SegmentList>()>;

}  // namespace forerun
