#include "retrieval/store/manifest.h"

#include <gtest/gtest.h>

#include "retrieval/store/store_test_support.h"

namespace forerun {
namespace {

using namespace test;

Manifest example() {
  Manifest manifest;
  manifest.identity = kIdentity;
  manifest.capacity_tokens = 12345;
  manifest.next_number = 17;
  manifest.n_source_bytes = 4096;
  manifest.segments = {{3, 1'000'000, 17}, {12, 5, 1}};
  manifest.journals = {15, 16};
  return manifest;
}

TEST(Manifest, ComesBackAsItWas) {
  const TempDir folder;
  const auto path = folder.file("manifest");
  for (Manifest manifest : {example(), example()}) {
    manifest.segments.pop_back();
    EXPECT_EQ(manifest.write(path), Replaced::kDurable);
    EXPECT_EQ(Manifest::read(path), manifest);
  }
  EXPECT_EQ(files_in(folder.path()).size(), 1u) << "nothing else is left";
}

TEST(Manifest, IsReadableText) {
  EXPECT_TRUE(example().to_text().starts_with(
      "forerun datastore 1\ntokenizer fedcba9876543210\nvocabulary 1000\ncapacity 12345\nnext 17\n"
      "sources 4096\nsegment 3 1000000 17\nsegment 12 5 1\njournal 15\njournal 16\nchecksum "));
}

TEST(Manifest, DamageAnywhereIsAnError) {
  const std::string text = example().to_text();
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_TRUE(error_of([&] { Manifest::from_text(text.substr(0, size), "m"); })) << size;
  }
  for (size_t at = 0; at < text.size(); ++at) {
    for (const int flip : {1, 4, 16, 64}) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      EXPECT_TRUE(error_of([&] { Manifest::from_text(damaged, "m"); })) << at;
    }
  }
  EXPECT_TRUE(error_of([&] { Manifest::from_text(text + "journal 18\n", "m"); }));
}

TEST(Manifest, AnotherVersionIsNamed) {
  std::string text = example().to_text();
  text.replace(text.find('1'), 1, "23");
  try {
    Manifest::from_text(text, "m");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("version 23"), std::string::npos) << error.what();
  }
}

TEST(Manifest, IsMissing) {
  const TempDir folder;
  EXPECT_EQ(error_of([&] { Manifest::read(folder.file("manifest")); }), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace forerun
