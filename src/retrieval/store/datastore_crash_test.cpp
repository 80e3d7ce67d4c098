// Kills a process that writes to a store, again and again, at any moment.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "retrieval/store/datastore.h"
#include "retrieval/store/store_check.h"
#include "retrieval/store/store_test_support.h"

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

}  // namespace
}  // namespace forerun
