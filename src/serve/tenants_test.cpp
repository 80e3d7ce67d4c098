#include "serve/tenants.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "serve/latencies.h"

namespace forerun {
namespace {

std::vector<Tenant> tenants_of(const std::string& text) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "tenants.json";
  std::ofstream(path) << text;
  return read_tenants(path);
}

TEST(TenantsTest, PathsBeginAtTheFilesFolder) {
  const auto tenants = tenants_of(
      R"({"a": {"keys": ["1", "2"], "datastores": ["x", "/y"], "live_datastore": "z"}, "b": {"keys": ["3"]}})");
  ASSERT_EQ(tenants.size(), 2u);
  const std::filesystem::path folder = ::testing::TempDir();
  EXPECT_EQ(tenants[0].keys, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(tenants[0].datastores, (std::vector<std::filesystem::path>{folder / "x", "/y"}));
  EXPECT_EQ(tenants[0].live_datastore, folder / "z");
  EXPECT_EQ(tenants[1].live_datastore, "");
}

TEST(TenantsTest, WhatMakesNoSenseIsAnErrorThatNamesIt) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      tenants_of(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_of("[]"), "");
  EXPECT_NE(error_of("{}"), "") << "whoever names a file wants keys to be asked for";
  EXPECT_NE(error_of(R"({"": {"keys": ["1"]}})"), "");
  EXPECT_NE(error_of(R"({"a": {"keys": ["1"], "live_datastore": ""}})"), "");
  EXPECT_NE(error_of("{").find("tenants.json"), std::string::npos);
  EXPECT_NE(error_of(R"({"ann": {}})").find("\"ann\""), std::string::npos);
  EXPECT_NE(error_of(R"({"ann": {"keys": [1]}})"), "");
  EXPECT_NE(error_of(R"({"ann": {"keys": ["1"], "store": "x"}})").find("\"store\""), std::string::npos);
  EXPECT_NE(error_of(R"({"a": {"keys": ["1"]}, "b": {"keys": ["1"]}})").find("twice"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"a": {"keys": ["1"], "live_datastore": "x"},
                         "b": {"keys": ["2"], "live_datastore": "./x"}})"),
            "");
  EXPECT_THROW(read_tenants("/nowhere/tenants.json"), Error);
}

TEST(LatenciesTest, CountsUpToEachBound) {
  Histogram histogram;
  histogram.add(0.002);
  histogram.add(0.001, 2);
  histogram.add(100);
  const auto counts = histogram.cumulated();
  EXPECT_EQ(counts[0], 2u);
  EXPECT_EQ(counts[1], 3u);
  EXPECT_EQ(counts[counts.size() - 2], 3u);
  EXPECT_EQ(counts.back(), 4u);
  EXPECT_DOUBLE_EQ(histogram.sum(), 100.004);
}

TEST(LatenciesTest, WatchesARequestAndTellsItsOwnFunctions) {
  Latencies latencies;
  int n_chunks = 0;
  Request request{.on_chunk = [&](const Chunk&) { ++n_chunks; }};
  latencies.watch(request);
  request.on_progress({.n_prompt = 2});
  request.on_progress({.n_prompt = 2, .n_read = 2});
  const std::vector<TokenId> tokens(3);
  const Timings timings;
  const SpeculationStatistics speculation;
  const Chunk chunk{.text = "abc",
                    .tokens = tokens,
                    .ends = {},
                    .origins = {},
                    .logprobs = {},
                    .timings = timings,
                    .speculation = speculation};
  request.on_chunk(chunk);
  request.on_chunk(chunk);
  EXPECT_EQ(n_chunks, 2);
  EXPECT_EQ(latencies.queue().cumulated().back(), 1u);
  EXPECT_EQ(latencies.first_token().cumulated().back(), 1u);
  EXPECT_EQ(latencies.inter_token().cumulated().back(), 3u) << "one for each token of the second";
}

}  // namespace
}  // namespace forerun
