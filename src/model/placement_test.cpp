#include "model/placement.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace forerun {
namespace {

TEST(Placement, SaysWhichLayersAreWhere) {
  Placement placement;
  EXPECT_EQ(placement.where(), "");
  placement.parts = {{.device = {nullptr, "cuda:0"}, .n_layers = 23}};
  placement.n_on_cpu = 10;
  EXPECT_EQ(placement.where(), "layers 0-9 on cpu, 10-31 and the head on cuda:0");
  placement.parts.push_back({.device = {nullptr, "far:50052"}, .n_layers = 2});
  EXPECT_EQ(placement.where(), "layers 0-9 on cpu, 10-32 on cuda:0, 33 and the head on far:50052");
  placement.n_on_cpu = 0;
  placement.parts[1].n_layers = 1;
  placement.cpu_experts = true;
  EXPECT_EQ(placement.where(), "layers 0-22 on cuda:0, the head on far:50052, experts on cpu");
}

TEST(Placement, OptionsThatMakeNoSense) {
  const auto refused = [](const PlacementOptions& options) {
    try {
      check_placement(options);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInvalidArgument;
    }
    return false;
  };
  EXPECT_TRUE(refused({.n_gpu_layers = -1}));
  EXPECT_TRUE(refused({.split = {1, -1}}));
  EXPECT_TRUE(refused({.split = {0, 0}}));
  for (const char* endpoint : {"", "host", "host:", ":1", "host:0", "host:65536", "host:1x", "a:b:1"}) {
    EXPECT_TRUE(refused({.rpc = {endpoint}})) << endpoint;
  }
  EXPECT_TRUE(refused({.rpc = {"host:1", "host:1"}}));
  EXPECT_FALSE(refused({}));
  EXPECT_FALSE(refused({.n_gpu_layers = 0, .split = {0, 2.5}, .rpc = {"host:1", "10.0.0.1:65535"}}));
}

}  // namespace
}  // namespace forerun
