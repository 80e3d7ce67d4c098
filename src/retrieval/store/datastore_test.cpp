#include "retrieval/store/datastore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "retrieval/store/store_check.h"
#include "retrieval/store/store_test_support.h"

namespace forerun {
namespace {

using namespace test;
using Mode = Datastore::Mode;
using testing::ElementsAre;
using testing::IsEmpty;

class DatastoreTest : public testing::Test {
 protected:
  std::unique_ptr<Datastore> open(Mode mode = Mode::kCreate) {
    return Datastore::open(path_, mode, quiet_options());
  }
  std::unique_ptr<Datastore> open_limited(int64_t capacity, int64_t max_segment = 1 << 20) {
    StoreOptions options = quiet_options();
    options.capacity_tokens = capacity;
    options.max_segment_tokens = max_segment;
    return Datastore::open(path_, Mode::kCreate, options);
  }
  static std::vector<Document> documents(const Datastore& store) {
    return documents_in(*store.snapshot());
  }

  TempDir folder_;
  std::filesystem::path path_ = folder_.file("store");
};

TEST_F(DatastoreTest, BeginsEmptyAndFindsWhatWasAdded) {
  const auto store = open();
  EXPECT_THAT(*store->snapshot(), IsEmpty());
  store->add(document({1, 2, 3}));
  EXPECT_EQ(count_occurrences(*store->snapshot(), document({2, 3})), 1);
  store->add(document({9, 2, 3}));
  EXPECT_EQ(count_occurrences(*store->snapshot(), document({2, 3})), 2);
  EXPECT_EQ(count_occurrences(*store->snapshot(), document({3, 9})), 0) << "documents are apart";
  EXPECT_EQ(store->info().n_documents, 2);
  EXPECT_EQ(store->info().n_live_documents, 2);
}

TEST_F(DatastoreTest, ASnapshotStaysAsItIs) {
  auto store = open();
  store->add(document({1, 2, 3}));
  const auto before = store->snapshot();
  store->add(document({1, 2, 3}));
  store->compact({});
  store->add(document({1, 2, 3}));
  EXPECT_EQ(count_occurrences(*store->snapshot(), document({1})), 3);
  store.reset();
  EXPECT_EQ(count_occurrences(*before, document({1})), 1);
}

TEST_F(DatastoreTest, IsThereAgainAfterReopening) {
  std::vector<Document> expected;
  for (int round = 0; round < 12; ++round) {
    const auto store = open();
    ASSERT_EQ(documents(*store), expected) << round;
    for (int i = 0; i < 3; ++i) {
      expected.push_back(numbered_document(10 * round + i, i));
      store->add(expected.back());
    }
    if (round % 3 == 1) store->tidy({});
    if (round % 4 == 3) store->compact({});
    ASSERT_EQ(documents(*store), expected) << round;
  }
  EXPECT_EQ(documents(*open(Mode::kRead)), expected);
  EXPECT_THAT(verify_store(path_).problems, IsEmpty());
}

TEST_F(DatastoreTest, AppendsToAPartlyFilledTail) {
  // Documents gather in one segment until it is full, over a reopening too.
  {
    const auto store = open();
    for (int i = 0; i < 100; ++i) store->add(numbered_document(i));
    EXPECT_EQ(store->snapshot()->size(), 1u);
  }
  const auto store = open();
  for (int i = 100; i < 700; ++i) store->add(numbered_document(i));
  EXPECT_LE(store->snapshot()->size(), 3u);
  for (int i = 0; i < 700; ++i) {
    ASSERT_EQ(count_occurrences(*store->snapshot(), numbered_document(i)), 1) << i;
  }
}

TEST_F(DatastoreTest, ADocumentMayBeLargerThanAnything) {
  const auto store = open_limited(0, 100);
  const Document large = numbered_document(7, 5000);
  store->add(large);
  store->add(document({1, 2}));
  EXPECT_EQ(documents(*store), (Documents{large, document({1, 2})}));
  store->compact({});
  EXPECT_EQ(documents(*store), (Documents{large, document({1, 2})}));
  EXPECT_EQ(documents(*open(Mode::kRead)), documents(*store));
}

TEST_F(DatastoreTest, EmptyDocumentsAreNothing) {
  const auto store = open();
  store->add({});
  EXPECT_EQ(store->info().n_documents, 0);
  EXPECT_TRUE(store->compact({}));
  EXPECT_TRUE(store->tidy({}));
  EXPECT_TRUE(store->add_text({}, {}, {}));
  EXPECT_THAT(store->info().files, IsEmpty());
}

TEST_F(DatastoreTest, ForgetsTheOldestWhenItIsFull) {
  const auto store = open_limited(800);
  std::vector<Document> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(numbered_document(i, 7));  // ten tokens with their end
    store->add(all.back());
    if (i % 10 == 9) store->tidy({});
    const std::vector<Document> kept = documents(*store);
    const auto n = static_cast<std::ptrdiff_t>(kept.size());
    ASSERT_EQ(kept, std::vector(all.end() - n, all.end())) << "the newest, in order";
    ASSERT_LE(store->info().n_tokens, 800 + 100) << "and what is not folded yet";
    if (i > 80) {
      ASSERT_GE(store->info().n_tokens, 800 - 200 - 100) << "a quarter goes at once";
    }
  }
  EXPECT_EQ(documents(*open(Mode::kRead)), documents(*store));
}

TEST_F(DatastoreTest, CapacityIsRememberedAndCanChange) {
  { EXPECT_EQ(open_limited(12345)->info().capacity_tokens, 12345); }
  { EXPECT_EQ(open()->info().capacity_tokens, 12345); }
  { EXPECT_EQ(open_limited(0)->info().capacity_tokens, 0); }
  EXPECT_EQ(open()->info().capacity_tokens, 0);
}

TEST_F(DatastoreTest, ATextLargerThanTheCapacityIsKeptAlone) {
  const auto store = open_limited(50);
  store->add(document({1}));
  Document text = numbered_document(3, 500);
  text.push_back(Segment::kSeparator);
  store->add_text(text, {}, {});
  EXPECT_EQ(documents(*store), Documents{numbered_document(3, 500)});
  store->add(document({2}));
  store->tidy({});
  EXPECT_EQ(documents(*store), Documents{document({2})});
}

TEST_F(DatastoreTest, TokensOutsideTheVocabularyChangeNothing) {
  const auto store = open();
  store->add(document({1, 2}));
  for (const int bad : {-1, -2, 1000, 1 << 30}) {
    EXPECT_EQ(error_of([&] { store->add(document({1, bad})); }), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(error_of([&] {
              store->add_text(document({1, 1000, -1}), {}, {});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([&] { store->add_text(document({1, 2}), {}, {}); }), ErrorCode::kInvalidArgument);
  store->add(document({3}));
  EXPECT_EQ(documents(*store), (Documents{document({1, 2}), document({3})}));
  EXPECT_EQ(documents(*open(Mode::kRead)), documents(*store));
}

TEST_F(DatastoreTest, AddsTextsWithTheirSources) {
  {
    const auto store = open();
    store->add(document({7}));
    EXPECT_FALSE(store->has_source(11));
    EXPECT_TRUE(store->add_text(document({1, 2, -1, 3, -1}), std::vector<uint64_t>{11, 12}, {}));
    EXPECT_TRUE(store->add_text(document({4, -1}), std::vector<uint64_t>{13}, {}));
    EXPECT_TRUE(store->has_source(12));
    EXPECT_FALSE(store->add_text(document({5, -1}), std::vector<uint64_t>{14},
                                 {.progress = [](double) { return false; }}));
    EXPECT_FALSE(store->has_source(14));
  }
  const auto store = open();
  EXPECT_TRUE(store->has_source(11) && store->has_source(12) && store->has_source(13));
  EXPECT_FALSE(store->has_source(14));
  EXPECT_EQ(documents(*store),
            (Documents{document({7}), document({1, 2}), document({3}), document({4})}));
  EXPECT_THAT(verify_store(path_).problems, IsEmpty());
}

TEST_F(DatastoreTest, GivingUpLeavesEverythingAsItWas) {
  const auto store = open();
  for (int i = 0; i < 50; ++i) store->add(numbered_document(i));
  store->tidy({});
  for (int i = 50; i < 60; ++i) store->add(numbered_document(i));
  const auto before = documents(*store);
  EXPECT_FALSE(store->compact({.progress = [](double) { return false; }}));
  EXPECT_EQ(documents(*store), before);
  store->add(numbered_document(60));  // what was frozen stays apart from it
  EXPECT_EQ(documents(*open(Mode::kRead)), documents(*store));
  EXPECT_TRUE(store->compact({}));
  EXPECT_EQ(store->info().n_live_tokens, 0);
  EXPECT_EQ(store->info().files.size(), 1u);
  EXPECT_EQ(documents(*store).size(), 61u);
}

TEST_F(DatastoreTest, CompactMakesAsFewSegmentsAsAllowed) {
  const auto store = open_limited(0, 40);
  for (int i = 0; i < 40; ++i) {  // nine tokens with their end
    store->add(numbered_document(i, 6));
    if (i % 4 == 0) store->tidy({});
  }
  const auto before = documents(*store);
  store->compact({});
  EXPECT_EQ(documents(*store), before);
  EXPECT_LE(store->info().files.size(), 360u / 32 + 1);
  for (const auto& file : store->info().files) EXPECT_LE(file.n_tokens, 40);
  const auto files = files_in(path_);
  store->compact({});
  EXPECT_EQ(files_in(path_), files) << "nothing to do the second time";
}

TEST_F(DatastoreTest, LeavesOnlyTheFilesItNeeds) {
  const auto store = open();
  for (int i = 0; i < 10; ++i) {
    store->add(numbered_document(i));
    store->tidy({});
  }
  store->compact({});
  std::vector<std::string> names;
  for (const auto& [name, contents] : files_in(path_)) names.push_back(name.substr(0, 8));
  EXPECT_THAT(names, ElementsAre("journal-", "lock", "manifest", "segment-"));
}

TEST_F(DatastoreTest, SyncsEachDocumentIfAsked) {
  StoreOptions options = quiet_options();
  options.sync_interval = std::chrono::milliseconds(0);
  const auto store = Datastore::open(path_, Mode::kCreate, options);
  store->add(document({1}));
  store->flush();
  EXPECT_EQ(documents(*open(Mode::kRead)), Documents{document({1})});
}

}  // namespace
}  // namespace forerun
