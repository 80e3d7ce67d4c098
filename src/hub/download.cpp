#include "hub/download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "core/error.h"
#include "core/replace_file.h"
#include "hub/file_lock.h"
#include "hub/retries.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kDownloadMode = 0644;

bool is_there(const fs::path& target, const HubFile& file, const std::function<void()>& on_wait) {
  std::error_code absent;
  if (fs::file_size(target, absent) != static_cast<uintmax_t>(file.n_bytes) || absent) return false;
  const OpenFile open(target, O_RDONLY);
  ChecksumOfBytes checksum(file.checksum.kind, file.n_bytes);
  add_file(checksum, open.fd(), file.n_bytes, target, on_wait);
  return checksum.finish() == file.checksum.hex;
}

// What came so far, and its checksum.
class Part {
 public:
  Part(fs::path path, const HubFile& file)
      : path_(std::move(path)), expected_(file), open_(path_, O_RDWR | O_CREAT, kDownloadMode) {}

  int64_t n_bytes() const { return n_bytes_; }
  int64_t n_missing() const { return expected_.n_bytes - n_bytes_; }

  // Goes on behind what is there.
  void resume(const std::function<void()>& on_wait) {
    struct stat status {};
    if (::fstat(open_.fd(), &status) != 0) fail_io("read", path_, errno);
    if (status.st_size > expected_.n_bytes) return begin_anew();
    add_file(checksum_.emplace(expected_.checksum.kind, expected_.n_bytes), open_.fd(), status.st_size,
             path_, on_wait);
    n_bytes_ = status.st_size;
  }

  void begin_anew() {
    if (::ftruncate(open_.fd(), 0) != 0) fail_io("write", path_, errno);
    checksum_.emplace(expected_.checksum.kind, expected_.n_bytes);
    n_bytes_ = 0;
  }

  void append(std::string_view piece) {
    const auto bytes = std::as_bytes(std::span(piece));
    if (static_cast<int64_t>(bytes.size()) > n_missing()) fail_wrong("is longer than the hub says");
    write_at(open_.fd(), n_bytes_, bytes, path_);
    checksum_->add(bytes);
    n_bytes_ += static_cast<int64_t>(bytes.size());
  }

  // It is whole.
  void finish(const fs::path& target) {
    if (checksum_->finish() != expected_.checksum.hex)
      fail_wrong("has another checksum than the hub says");
    if (::fsync(open_.fd()) != 0) fail_io("write", path_, errno);
    if (::rename(path_.c_str(), target.c_str()) != 0) fail_io("write", target, errno);
    sync_folder(target.parent_path());
  }

  [[noreturn]] void fail_wrong(std::string_view what) {
    ::unlink(path_.c_str());
    fail(ErrorCode::kInvalidFile, "{} {}, and was removed: try again, or ask who made it",
         expected_.path, what);
  }

 private:
  fs::path path_;
  HubFile expected_;
  OpenFile open_;
  std::optional<ChecksumOfBytes> checksum_;
  int64_t n_bytes_ = 0;
};

// What the lock's file says about the part beside it.
struct PartOrigin {
  std::string checksum;
  std::string etag;  // of the answer that it came with; empty: none that says anything

  static PartOrigin parse(const std::string& text) {
    const size_t end = text.find('\n');
    if (end == std::string::npos) return {};
    return {.checksum = text.substr(0, end), .etag = text.substr(end + 1)};
  }
  std::string text() const { return checksum + "\n" + etag; }
};

HttpHeaders range_headers(int64_t from, const std::string& etag) {
  HttpHeaders headers;
  if (from == 0) return headers;
  headers.emplace_back("Range", fmt::format("bytes={}-", from));
  if (!etag.empty()) headers.emplace_back("If-Range", etag);
  return headers;
}

// Weak ones do not say that bytes are the same.
std::string strong_etag(const HttpGet& answer) {
  const std::string etag = answer.header("ETag");
  return etag.size() <= 256 && etag.starts_with('"') ? etag : std::string();
}

// The part's bytes from where it ends, as far as the connection lasts.
class Transfer {
 public:
  Transfer(Hub& hub, const HubRepository& repository, const HubFile& file,
           const DownloadProgress& progress)
      : hub_(hub), repository_(repository), file_(file), progress_(progress) {}

  void run(Part& part, FileLock& lock, PartOrigin& origin) {
    const auto answer = hub_.file(repository_, file_, range_headers(part.n_bytes(), origin.etag));
    const bool goes_on =
        answer->status() == 206 &&
        answer->header("Content-Range").starts_with(fmt::format("bytes {}-", part.n_bytes()));
    if (!goes_on) part.begin_anew();
    origin.etag = strong_etag(*answer);
    lock.write(origin.text());
    if (!goes_on && answer->status() != 200)
      throw ConnectionLost("the hub sends other bytes than were asked for");
    const std::string length = answer->header("Content-Length");
    if (!length.empty() && length != std::to_string(part.n_missing())) {
      fail(ErrorCode::kIo, "the hub sends {} bytes for {} and lists it with {}: try again later", length,
           file_.path, file_.n_bytes);
    }
    for (auto piece = answer->read(); !piece.empty(); piece = answer->read()) {
      part.append(piece);
      progress_(file_, part.n_bytes());
    }
  }

 private:
  Hub& hub_;
  const HubRepository& repository_;
  const HubFile& file_;
  const DownloadProgress& progress_;
};

void check_space(const fs::path& folder, const Part& part, const HubFile& file) {
  std::error_code unknown;
  const fs::space_info space = fs::space(folder, unknown);
  if (unknown || space.available >= static_cast<uintmax_t>(part.n_missing())) return;
  fail(ErrorCode::kIo,
       "{} needs {:.1f} MB more and {} has {:.1f} MB free: free some space and try again", file.path,
       static_cast<double>(part.n_missing()) / 1e6, folder.string(),
       static_cast<double>(space.available) / 1e6);
}

}  // namespace

void download(Hub& hub, const HubRepository& repository, const HubFile& file, const fs::path& target,
              const DownloadProgress& progress) {
  const auto& on_wait = hub.http().on_wait;
  fs::create_directories(target.parent_path());
  FileLock lock(target.string() + ".lock", on_wait);
  if (is_there(target, file, on_wait)) return lock.remove();

  PartOrigin origin = PartOrigin::parse(lock.read());
  Part part(target.string() + ".part", file);
  if (origin.checksum == file.checksum.hex) {
    part.resume(on_wait);
  } else {
    origin = {.checksum = file.checksum.hex, .etag = {}};
    part.begin_anew();
  }
  check_space(target.parent_path(), part, file);
  Transfer transfer(hub, repository, file, progress);
  Retries retries(on_wait);
  while (part.n_missing() > 0) {
    const int64_t n_before = part.n_bytes();
    try {
      transfer.run(part, lock, origin);
      if (part.n_missing() > 0) throw ConnectionLost("the hub ended " + file.path + " early");
    } catch (const ConnectionLost& loss) {
      if (part.n_bytes() > n_before) retries.progressed();
      retries.after(loss);
    }
  }
  part.finish(target);
  lock.remove();
}

}  // namespace forerun
