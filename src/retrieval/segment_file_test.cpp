#include "retrieval/segment_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "core/error.h"
#include "core/hash.h"
#include "retrieval/segment.h"
#include "retrieval/segment_test_support.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

class SegmentFile : public ::testing::Test {
 protected:
  std::shared_ptr<const Segment> random_segment(int n_vocab, int n_documents = 50) {
    RandomText spec;
    spec.n_vocab = n_vocab;
    spec.stride = std::max(1, n_vocab / 5);
    spec.n_documents = n_documents;
    return Segment::build(random_text(spec, random_), {0x1234567890ABCDEF, n_vocab}, 1);
  }

  std::string read() {
    std::ifstream stream(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void replace(const std::string& content) { std::ofstream(path_, std::ios::binary) << content; }

  void put_byte(size_t offset, char byte) {
    std::fstream stream(path_, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(byte);
  }

  // The message of the error, which must be about the file.
  std::string error_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      code_ = error.code();
      EXPECT_NE(std::string(error.what()).find(path_.string()), std::string::npos);
      return error.what();
    }
    return "";
  }

  test::TempDir temporary_;
  const std::filesystem::path& folder_ = temporary_.path();
  const std::filesystem::path path_ = folder_ / "segment";
  std::mt19937 random_{5};
  ErrorCode code_{};  // of the last error
};

TEST_F(SegmentFile, ReadsWhatItWrote) {
  for (const int n_vocab : {1, 7, 65535, 65536, 262144}) {
    for (const int n_documents : {0, 1, 300}) {
      const auto built = random_segment(n_vocab, n_documents);
      built->write(path_);
      const auto opened = Segment::open(path_);
      opened->verify();
      EXPECT_EQ(opened->identity(), built->identity());
      EXPECT_EQ(opened->n_tokens(), built->n_tokens());
      EXPECT_EQ(opened->n_documents(), built->n_documents());
      EXPECT_EQ(opened->n_bytes(), static_cast<int64_t>(std::filesystem::file_size(path_)));
      EXPECT_TRUE(std::ranges::equal(opened->order(), built->order()));
      for (int64_t i = 0; i < built->n_tokens(); ++i) EXPECT_EQ(opened->token(i), built->token(i));
      for (int token = 0; token < n_vocab; token += std::max(1, n_vocab / 5)) {
        const TokenId query{token};
        EXPECT_EQ(opened->find({&query, 1}), built->find({&query, 1}));
      }
      // What was opened can be written again, over the very file.
      const std::string before = read();
      opened->write(path_);
      EXPECT_EQ(read(), before);
    }
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(SegmentFile, SizePerToken) {
  for (const int n_vocab : {49152, 262144}) {
    const auto segment = random_segment(n_vocab, 20000);
    segment->write(path_);
    const double n_bytes = static_cast<double>(std::filesystem::file_size(path_));
    EXPECT_LT(n_bytes / static_cast<double>(segment->n_tokens()), n_vocab <= 65535 ? 6.15 : 8.2);
  }
}

TEST_F(SegmentFile, EveryDamagedByteIsFound) {
  for (const int n_vocab : {300, 70000}) {
    random_segment(n_vocab, 12)->write(path_);
    const std::string good = read();
    for (size_t i = 0; i < good.size(); ++i) {
      put_byte(i, static_cast<char>(good[i] ^ (1 << (i % 8))));
      EXPECT_NE(error_of([&] { Segment::open(path_)->verify(); }), "") << "byte " << i;
      const bool is_version =
          i >= offsetof(SegmentHeader, version) && i < offsetof(SegmentHeader, token_bytes);
      if (!is_version) {
        EXPECT_EQ(code_, ErrorCode::kInvalidFile) << "byte " << i;
      }
      put_byte(i, good[i]);
    }
  }
}

TEST_F(SegmentFile, EveryCutIsFoundWhenOpened) {
  random_segment(300, 12)->write(path_);
  const std::string good = read();
  replace(good + "x");
  EXPECT_NE(error_of([&] { Segment::open(path_); }), "");
  for (size_t size = good.size(); size-- > 0;) {
    std::filesystem::resize_file(path_, size);
    EXPECT_NE(error_of([&] { Segment::open(path_); }), "") << size << " bytes";
  }
}

// Reading a damaged text or index without verifying it gives wrong answers and no more.
TEST_F(SegmentFile, SearchingDamageIsHarmless) {
  for (const int n_vocab : {300, 70000}) {
    random_segment(n_vocab, 40)->write(path_);
    const std::string good = read();
    SegmentHeader header;
    std::memcpy(&header, good.data(), sizeof(header));
    for (int round = 0; round < 200; ++round) {
      std::string bad = good;
      std::uniform_int_distribution<size_t> place(header.directory_offset, header.checksums_offset - 1);
      for (int i = 0; i < 200; ++i) bad[place(random_)] = static_cast<char>(random_());
      replace(bad);
      const auto segment = Segment::open(path_);
      for (int i = 0; i < 20; ++i) {
        std::vector<TokenId> query(static_cast<size_t>(1 + i));
        for (TokenId& token : query) token = TokenId{static_cast<int>(random_() % 5) * (n_vocab / 5)};
        const auto range = segment->find(query);
        EXPECT_LE(range.begin, range.end);
        for (int64_t rank = range.begin; rank < range.end; ++rank) {
          std::array<TokenId, 10> out{};
          const int n = segment->copy(segment->place(rank), out);
          for (int j = 0; j < n; ++j) EXPECT_LT(static_cast<uint32_t>(to_int(out[j])), n_vocab);
        }
      }
    }
  }
}

TEST_F(SegmentFile, HeadersThatLieAreRefused) {
  random_segment(300)->write(path_);
  const std::string good = read();
  const auto with = [&](auto change) {
    SegmentHeader header;
    std::memcpy(&header, good.data(), sizeof(header));
    change(header);
    header.header_hash =
        StableHash::of({reinterpret_cast<const char*>(&header), offsetof(SegmentHeader, header_hash)});
    std::string bad = good;
    std::memcpy(bad.data(), &header, sizeof(header));
    replace(bad);
    return error_of([&] { Segment::open(path_); });
  };
  EXPECT_EQ(with([](SegmentHeader&) {}), "");
  EXPECT_NE(with([](SegmentHeader& h) { h.version = 99; }).find("newer version of forerun"),
            std::string::npos);
  EXPECT_EQ(code_, ErrorCode::kUnsupported);
  EXPECT_NE(with([](SegmentHeader& h) { h.version = 1; }), "") << "another version has other parts";
  EXPECT_EQ(code_, ErrorCode::kInvalidFile);
  EXPECT_NE(with([](SegmentHeader& h) { h.version = 0; }), "");
  EXPECT_NE(with([](SegmentHeader& h) { h.n_tokens = uint64_t{1} << 62; }), "");
  EXPECT_NE(with([](SegmentHeader& h) { h.n_tokens += 1000; }), "");
  EXPECT_NE(with([](SegmentHeader& h) { h.n_documents = h.n_tokens + 1; }), "");
  EXPECT_NE(with([](SegmentHeader& h) { h.n_documents = 0; }), "");
  EXPECT_NE(with([](SegmentHeader& h) { h.n_vocab = 0; }), "");
  EXPECT_NE(with([](SegmentHeader& h) { h.n_vocab = 70000; }), "");
  EXPECT_NE(with([](SegmentHeader& h) { h.token_bytes = 4; }), "");
  EXPECT_NE(with([](SegmentHeader& h) { h.order_depth = 8; }), "");
  EXPECT_NE(with([](SegmentHeader& h) { h.text_offset += 64; }), "");
  EXPECT_NE(with([](SegmentHeader& h) { h.file_bytes += 64; }), "");
}

TEST_F(SegmentFile, OtherFilesAndNoFile) {
  replace("a text file, longer than a header would be: " + std::string(500, 'x'));
  EXPECT_NE(error_of([&] { Segment::open(path_); }).find("not a datastore segment"), std::string::npos);
  try {
    Segment::open(folder_ / "missing");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  }
}

TEST_F(SegmentFile, FailedWritesLeaveNothingBehind) {
  const auto segment = random_segment(300, 2000);
  const auto code_of = [&](const std::filesystem::path& path) {
    try {
      segment->write(path);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInvalidArgument;
  };
  EXPECT_EQ(code_of(folder_ / "missing" / "segment"), ErrorCode::kIo);
  // A target that a file cannot replace.
  std::filesystem::create_directories(folder_ / "taken" / "inside");
  EXPECT_EQ(code_of(folder_ / "taken"), ErrorCode::kIo);
  std::filesystem::remove_all(folder_ / "taken");

  // A disk that is full: no file may grow past 64 KiB.
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  getrlimit(RLIMIT_FSIZE, &old_limit);
  const rlimit limit{1 << 16, old_limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const ErrorCode code = code_of(path_);
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace forerun
