// A store under load: documents are added and searched while it folds and merges.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "retrieval/store/datastore.h"
#include "retrieval/store/store_check.h"
#include "retrieval/store/store_test_support.h"
#include "support/file_size_limit.h"

namespace forerun {
namespace {

using namespace test;
using namespace std::chrono_literals;
using Mode = Datastore::Mode;

// Folds all the time.
StoreOptions busy_options() {
  return {.identity = kIdentity,
          .fold_tokens = 500,
          .max_segment_tokens = 20'000,
          .sync_interval = 5ms,
          .background = true};
}

// Waits for something that happens in the background.
template <typename Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

std::map<Document, int> counts(const Documents& documents) {
  std::map<Document, int> n;
  for (const Document& document : documents) ++n[document];
  return n;
}

TEST(DatastoreThreads, EveryDocumentIsFoundFromTheMomentItIsAdded) {
  const TempDir folder;
  const auto path = folder.file("store");
  constexpr int kAdders = 2;
  constexpr int kDocuments = 600;  // of each
  {
    const auto store = Datastore::open(path, Mode::kCreate, busy_options());
    std::atomic<int> n_added[kAdders] = {};
    std::atomic<bool> done = false;
    std::vector<std::thread> adders, readers;
    for (int a = 0; a < kAdders; ++a) {
      adders.emplace_back([&, a] {
        for (int i = 0; i < kDocuments; ++i) {
          store->add(numbered_document(a * 10'000 + i, 10));
          n_added[a] = i + 1;
        }
      });
    }
    for (int r = 0; r < 2; ++r) {
      readers.emplace_back([&, r] {
        std::mt19937 random(static_cast<unsigned>(r));
        while (!done) {
          const int a = static_cast<int>(random() % kAdders);
          const int n = n_added[a];  // read before the snapshot is taken
          const auto snapshot = store->snapshot();
          if (n == 0) continue;
          const int i = static_cast<int>(random() % static_cast<unsigned>(n));
          ASSERT_EQ(count_occurrences(*snapshot, numbered_document(a * 10'000 + i, 10)), 1) << i;
        }
      });
    }
    std::thread others([&] {
      while (!done) {
        EXPECT_LE(store->info().n_live_tokens, store->info().n_tokens + 1'000'000);
        EXPECT_FALSE(Datastore::open(path, Mode::kRead, {.identity = kIdentity})->snapshot() == nullptr);
      }
    });
    for (auto& thread : adders) thread.join();
    EXPECT_TRUE(store->compact({})) << "in the middle of folding";
    done = true;
    for (auto& thread : readers) thread.join();
    others.join();
    EXPECT_EQ(store->info().problem, "");
    EXPECT_EQ(store->info().n_documents, kAdders * kDocuments);
  }
  const auto store = Datastore::open(path, Mode::kRead, {.identity = kIdentity});
  const auto found = counts(documents_in(*store->snapshot()));
  EXPECT_EQ(found.size(), static_cast<size_t>(kAdders * kDocuments));
  for (const auto& [document, n] : found) EXPECT_EQ(n, 1);
  EXPECT_TRUE(verify_store(path).problems.empty());
}

TEST(DatastoreThreads, FoldsAndMergesByItself) {
  const TempDir folder;
  const auto path = folder.file("store");
  const auto store = Datastore::open(path, Mode::kCreate, busy_options());
  for (int i = 0; i < 1000; ++i) store->add(numbered_document(i, 10));
  EXPECT_TRUE(eventually([&] { return store->info().n_live_tokens < 500; }));
  EXPECT_LE(store->info().n_segments, 9);
  EXPECT_EQ(documents_in(*store->snapshot()).size(), 1000u);
}

TEST(DatastoreThreads, KeepsToItsCapacityByItself) {
  const TempDir folder;
  StoreOptions options = busy_options();
  options.capacity_tokens = 4000;
  const auto store = Datastore::open(folder.file("store"), Mode::kCreate, options);
  for (int i = 0; i < 2000; ++i) store->add(numbered_document(i, 10));
  EXPECT_TRUE(eventually([&] { return store->info().n_tokens <= 4500; }));
  const auto kept = documents_in(*store->snapshot());
  EXPECT_EQ(kept.back(), numbered_document(1999, 10));
  EXPECT_EQ(kept.front(), numbered_document(2000 - static_cast<int>(kept.size()), 10));
}

TEST(DatastoreThreads, GoesOnServingWhenFoldingFails) {
  const TempDir folder;
  const auto path = folder.file("store");
  StoreOptions options = busy_options();
  options.fold_tokens = 400;
  std::mutex mutex;
  std::vector<std::string> problems;
  options.on_problem = [&](const std::string& message) {
    const std::lock_guard lock(mutex);
    problems.push_back(message);
  };
  const auto store = Datastore::open(path, Mode::kCreate, options);
  {
    const FileSizeLimit full(2500);  // enough for the journal, not for a segment of 400 tokens
    for (int i = 0; i < 38; ++i) store->add(numbered_document(i, 10));
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex);
      return !problems.empty();
    }));
    EXPECT_NE(store->info().problem, "");
    EXPECT_EQ(documents_in(*store->snapshot()).size(), 38u);
    store->add(document({1}));
  }
  EXPECT_EQ(documents_in(*Datastore::open(path, Mode::kRead, {})->snapshot()).size(), 39u);
  EXPECT_TRUE(store->compact({}));
  EXPECT_EQ(documents_in(*store->snapshot()).size(), 39u);
}

TEST(DatastoreThreads, ClosesWithoutWaitingForTheFold) {
  const TempDir folder;
  const auto path = folder.file("store");
  for (int round = 0; round < 10; ++round) {
    const auto store = Datastore::open(path, Mode::kCreate, busy_options());
    for (int i = 0; i < 100; ++i) store->add(numbered_document(100 * round + i, 10));
  }
  const auto found = counts(documents_in(*Datastore::open(path, Mode::kRead, {})->snapshot()));
  EXPECT_EQ(found.size(), 1000u);
}

}  // namespace
}  // namespace forerun
