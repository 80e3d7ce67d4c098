// Kills a process that writes to a store, again and again: at any moment, and in the middle of
// each of its writes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "retrieval/store/datastore.h"
#include "retrieval/store/store_check.h"
#include "retrieval/store/store_test_support.h"
#include "support/kill_at_write.h"

namespace forerun {
namespace {

using namespace test;
using namespace std::chrono_literals;
using Mode = Datastore::Mode;

constexpr int kKills = 200;
constexpr int kMaxDocuments = 100;  // of a round
constexpr int kTokens = 10;         // of a document, and more

// Adds documents, and writes the number of each to `acknowledgements` as soon as it is
// added. Folds and merges nearly always, so that most kills hit something.
[[noreturn]] void write_until_killed(const std::filesystem::path& path, int first,
                                     int acknowledgements) {
  const auto store = Datastore::open(
      path, Mode::kCreate,
      {.identity = kIdentity, .fold_tokens = 100, .max_segment_tokens = 5'000, .sync_interval = 1ms});
  for (int number = first; number < first + kMaxDocuments; ++number) {
    store->add(numbered_document(number, kTokens));
    if (::write(acknowledgements, &number, sizeof(number)) != sizeof(number)) ::_exit(1);
    if (number % 64 == 63) store->compact({});
  }
  while (true) ::pause();
}

// When a process is killed: so long after so many acknowledgements.
struct Moment {
  int n_acknowledged;
  std::chrono::microseconds delay;
};

// The acknowledgements of a process that was killed.
std::vector<int> acknowledged_until_killed(const std::filesystem::path& path, int first,
                                           const Moment& moment) {
  int pipe[2];
  EXPECT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    try {
      write_until_killed(path, first, pipe[1]);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(1);
    }
  }
  ::close(pipe[1]);
  std::vector<int> numbers;
  const auto read_one = [&] {
    int number = 0;
    if (::read(pipe[0], &number, sizeof(number)) != sizeof(number)) return false;
    numbers.push_back(number);
    return true;
  };
  while (static_cast<int>(numbers.size()) < moment.n_acknowledged && read_one()) {
  }
  std::this_thread::sleep_for(moment.delay);
  EXPECT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it failed before it was killed";
  while (read_one()) {
  }
  ::close(pipe[0]);
  return numbers;
}

TEST(DatastoreCrash, WhatWasAcknowledgedIsThereExactlyOnce) {
  const TempDir folder;
  const auto path = folder.file("store");
  std::mt19937 random(20);
  std::map<Document, bool> must_be_there;  // every document that may be; true: it must
  int next = 0;
  for (int round = 0; round < kKills; ++round) {
    const Moment moment{static_cast<int>(random() % kMaxDocuments),
                        std::chrono::microseconds(random() % (round % 4 == 0 ? 30'000 : 2'000))};
    const std::vector<int> numbers = acknowledged_until_killed(path, next, moment);
    ASSERT_GE(static_cast<int>(numbers.size()), moment.n_acknowledged);
    for (int number = next; number < next + kMaxDocuments; ++number) {
      must_be_there.emplace(numbered_document(number, kTokens), false);
    }
    for (const int number : numbers) must_be_there[numbered_document(number, kTokens)] = true;
    next += kMaxDocuments;
    if (!std::filesystem::exists(path / "manifest")) continue;  // killed before it began

    const StoreReport report = verify_store(path);
    ASSERT_TRUE(report.problems.empty()) << "round " << round << ": " << report.problems[0];
    const auto store = Datastore::open(path, Mode::kRead, {.identity = kIdentity});
    std::map<Document, int> found;
    for (const Document& document : documents_in(*store->snapshot())) ++found[document];
    for (const auto& [document, n] : found) {
      ASSERT_EQ(n, 1) << "round " << round;
      ASSERT_TRUE(must_be_there.contains(document)) << "round " << round;
      must_be_there[document] = true;  // what is there once stays
    }
    for (const auto& [document, must] : must_be_there) {
      ASSERT_TRUE(!must || found.contains(document)) << "round " << round;
    }
  }
}

// What a process does that is killed at each of its writes: all kinds of changes, each of which
// is acknowledged by the number of documents there are then.
class Changes {
 public:
  Changes(const std::filesystem::path& path, int acknowledgements)
      : store_(Datastore::open(
            path, Mode::kCreate,
            {.identity = kIdentity, .fold_tokens = 60, .max_segment_tokens = 300, .background = false})),
        acknowledgements_(acknowledgements) {}

  void make_all() {
    add(8);
    add_text(6);
    add(8);
    done(store_->tidy({}));
    add_text(12);
    add(3);
    done(store_->compact({}));
    add(2);
    store_->flush();
  }

  static Document document(int number) { return numbered_document(number, kTokens); }
  static constexpr int kDocuments = 8 + 6 + 8 + 12 + 3 + 2;

 private:
  void done(bool is_done) {
    if (!is_done || ::write(acknowledgements_, &n_, sizeof(n_)) != sizeof(n_)) ::_exit(1);
  }
  void add(int n) {
    for (int i = 0; i < n; ++i) {
      store_->add(document(n_++));
      done(true);
    }
  }
  void add_text(int n) {
    std::vector<TokenId> text;
    for (int i = 0; i < n; ++i) {
      const Document next = document(n_++);
      text.insert(text.end(), next.begin(), next.end());
      text.push_back(Segment::kSeparator);
    }
    done(store_->add_text(text, std::vector<uint64_t>{static_cast<uint64_t>(n_)}, {}));
  }

  std::unique_ptr<Datastore> store_;
  int acknowledgements_;
  int n_ = 0;
};

// How many documents were acknowledged, and whether the process was killed at its n-th write.
struct Ended {
  int n_acknowledged = 0;
  bool was_killed = false;
};
Ended killed_at_write(int n, const std::filesystem::path& path) {
  int pipe[2];
  EXPECT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    kill_at_write(n, path.string());
    try {
      Changes(path, pipe[1]).make_all();
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(pipe[1]);
  Ended ended;
  for (int n_documents = 0; ::read(pipe[0], &n_documents, sizeof(n_documents)) == sizeof(n_documents);) {
    ended.n_acknowledged = n_documents;
  }
  ::close(pipe[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ended.was_killed = WIFSIGNALED(status);
  EXPECT_TRUE(ended.was_killed || WEXITSTATUS(status) == 0);
  return ended;
}

TEST(DatastoreCrash, KilledInTheMiddleOfAnyWriteItKeepsWhatWasAcknowledged) {
  const TempDir folder;
  constexpr int kAtLeast = 100;  // writes, syncs and so on
  for (int n = 1;; ++n) {
    const auto path = folder.file("store-" + std::to_string(n));
    const Ended ended = killed_at_write(n, path);
    if (!ended.was_killed) {
      EXPECT_EQ(ended.n_acknowledged, Changes::kDocuments);
      EXPECT_GT(n, kAtLeast);
      break;
    }
    // Whoever comes next goes on from there.
    const auto store =
        Datastore::open(path, Mode::kCreate, {.identity = kIdentity, .background = false});
    const StoreReport report = verify_store(path);
    ASSERT_TRUE(report.problems.empty()) << "write " << n << ": " << report.problems[0];
    const auto found = documents_in(*store->snapshot());
    ASSERT_GE(static_cast<int>(found.size()), ended.n_acknowledged) << "write " << n;
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i], Changes::document(static_cast<int>(i))) << "write " << n;
    }
    store->add(document({1, 2, 3}));
    ASSERT_TRUE(store->compact({})) << "write " << n;
    EXPECT_EQ(documents_in(*store->snapshot()).size(), found.size() + 1);
  }
}

}  // namespace
}  // namespace forerun
