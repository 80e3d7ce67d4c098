#include "hub/checksum.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/replace_file.h"

namespace forerun {
namespace {

constexpr int64_t kFilePieceBytes = 1 << 20;

}  // namespace

struct ChecksumOfBytes::Impl {
  struct Free {
    void operator()(EVP_MD_CTX* unused) const { EVP_MD_CTX_free(unused); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

ChecksumOfBytes::ChecksumOfBytes(Checksum::Kind kind, int64_t n_bytes)
    : impl_(std::make_unique<Impl>()) {
  const bool is_git = kind == Checksum::Kind::kGitBlob;
  CHECK(EVP_DigestInit_ex(impl_->context.get(), is_git ? EVP_sha1() : EVP_sha256(), nullptr) == 1);
  if (!is_git) return;
  std::string head = fmt::format("blob {}", n_bytes);
  head.push_back('\0');
  add(std::as_bytes(std::span(head)));
}

ChecksumOfBytes::~ChecksumOfBytes() = default;

void ChecksumOfBytes::add(std::span<const std::byte> bytes) {
  CHECK(EVP_DigestUpdate(impl_->context.get(), bytes.data(), bytes.size()) == 1);
}

std::string ChecksumOfBytes::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int n = 0;
  CHECK(EVP_DigestFinal_ex(impl_->context.get(), digest.data(), &n) == 1);
  std::string hex;
  for (unsigned int i = 0; i < n; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

void add_file(ChecksumOfBytes& checksum, int fd, int64_t n_bytes, const std::filesystem::path& path,
              const std::function<void()>& check) {
  std::vector<std::byte> piece(static_cast<size_t>(std::min(n_bytes, kFilePieceBytes)));
  for (int64_t at = 0; at < n_bytes;) {
    check();
    const auto n_wanted = static_cast<size_t>(std::min<int64_t>(n_bytes - at, kFilePieceBytes));
    const ssize_t n = ::pread(fd, piece.data(), n_wanted, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_io("read", path, n < 0 ? errno : EIO);
    checksum.add(std::span(piece).first(static_cast<size_t>(n)));
    at += n;
  }
}

}  // namespace forerun
