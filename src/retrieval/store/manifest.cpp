#include "retrieval/store/manifest.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <span>

#include "core/error.h"
#include "core/file_version.h"
#include "core/hash.h"
#include "retrieval/store/files.h"

namespace forerun {
namespace {

constexpr std::string_view kTitle = "forerun datastore ";

uint64_t checksum_of(std::string_view lines) {
  StableHash hash;
  hash.add(lines);
  return hash.value();
}

// Takes words off the front of a manifest. What does not fit makes everything after it
// fail, so it is enough to ask ok() at the end.
class WordReader {
 public:
  explicit WordReader(std::string_view text) : rest_(text) {}

  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

  // Whether the line begins with `name` and a space, which are then taken.
  bool accept(std::string_view name) {
    if (!rest_.starts_with(name) || !rest_.substr(name.size()).starts_with(' ')) return false;
    rest_.remove_prefix(name.size());
    return true;
  }
  void expect(std::string_view name) { ok_ = accept(name) && ok_; }

  // The next number of the line, which a space precedes.
  template <typename Number>
  Number number(int base = 10) {
    Number value{};
    if (!rest_.starts_with(' ')) {
      ok_ = false;
      return value;
    }
    rest_.remove_prefix(1);
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    ok_ = ok_ && error == std::errc{} && value >= 0;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  void end_line() {
    if (rest_.starts_with('\n')) {
      rest_.remove_prefix(1);
    } else {
      ok_ = false;
    }
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// What `read` makes of the line that begins with `name`.
template <typename Number>
Number line(WordReader& words, std::string_view name, int base = 10) {
  words.expect(name);
  const auto value = words.number<Number>(base);
  words.end_line();
  return value;
}

std::optional<Manifest> parse(WordReader words) {
  Manifest manifest;
  manifest.identity.tokenizer = line<uint64_t>(words, "tokenizer", 16);
  manifest.identity.n_vocab = line<int>(words, "vocabulary");
  manifest.capacity_tokens = line<int64_t>(words, "capacity");
  manifest.next_number = line<uint64_t>(words, "next");
  manifest.n_source_bytes = line<int64_t>(words, "sources");
  while (words.ok() && words.accept("segment")) {
    Manifest::SegmentEntry entry{};
    entry.number = words.number<uint64_t>();
    entry.n_tokens = words.number<int64_t>();
    entry.n_documents = words.number<int64_t>();
    words.end_line();
    manifest.segments.push_back(entry);
  }
  while (words.ok() && words.accept("journal")) {
    manifest.journals.push_back(words.number<uint64_t>());
    words.end_line();
  }
  if (!words.ok() || !words.at_end() || manifest.journals.empty()) return std::nullopt;
  return manifest;
}

[[noreturn]] void fail_damaged(const std::string& name) {
  fail(ErrorCode::kInvalidFile,
       "{} is damaged: it does not match its checksum; restore it from a copy or build the store anew",
       name);
}

}  // namespace

std::string Manifest::to_text() const {
  std::string text = fmt::format(
      "{}{}\ntokenizer {:016x}\nvocabulary {}\ncapacity {}\nnext {}\nsources {}\n", kTitle, kVersion,
      identity.tokenizer, identity.n_vocab, capacity_tokens, next_number, n_source_bytes);
  for (const SegmentEntry& entry : segments) {
    text += fmt::format("segment {} {} {}\n", entry.number, entry.n_tokens, entry.n_documents);
  }
  for (const uint64_t number : journals) text += fmt::format("journal {}\n", number);
  return text + fmt::format("checksum {:016x}\n", checksum_of(text));
}

Manifest Manifest::from_text(std::string_view text, const std::string& name) {
  if (!text.starts_with(kTitle)) {
    fail(ErrorCode::kInvalidFile, "{} is not the manifest of a datastore", name);
  }
  WordReader title(text.substr(kTitle.size() - 1));
  const int version = title.number<int>();
  if (title.ok()) check_file_version(name, version, kVersion);
  const size_t last_line = text.rfind("checksum ");
  if (last_line == std::string_view::npos) fail_damaged(name);
  WordReader checksum(text.substr(last_line));
  const auto stored = line<uint64_t>(checksum, "checksum", 16);
  const std::string_view body = text.substr(0, last_line);
  if (!checksum.ok() || !checksum.at_end() || stored != checksum_of(body)) fail_damaged(name);
  const auto manifest = parse(WordReader(body.substr(body.find('\n') + 1)));
  if (!manifest) fail_damaged(name);
  return *manifest;
}

Manifest Manifest::read(const std::filesystem::path& path) {
  const auto bytes = read_whole_file(path);
  return from_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

Replaced Manifest::write(const std::filesystem::path& path) const {
  const std::string text = to_text();
  return replace_file(path, std::as_bytes(std::span(text)));
}

}  // namespace forerun
