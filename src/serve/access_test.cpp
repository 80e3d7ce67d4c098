#include "serve/access.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

namespace forerun {
namespace {

HttpRequest asking(const std::string& header, const std::string& value) {
  return {.method = "GET", .path = "/", .headers = {{header, value}}};
}

TEST(AccessTest, WithoutKeysEverybodyMayAsk) {
  EXPECT_EQ(Access({}, {}, "*").who({.method = "GET", .path = "/"}), "");
}

TEST(AccessTest, KeysComeInTwoHeaders) {
  const Access access({"one", "two"}, {{.name = "ann", .keys = {"three"}}}, "*");
  EXPECT_EQ(access.who(asking("authorization", "Bearer two")), "");
  EXPECT_EQ(access.who(asking("x-api-key", "one")), "");
  EXPECT_EQ(access.who(asking("x-api-key", "three")), "ann");
  EXPECT_EQ(access.who(asking("authorization", "two")), std::nullopt);
  EXPECT_EQ(access.who(asking("authorization", "Bearer on")), std::nullopt);
  EXPECT_EQ(access.who(asking("x-api-key", "")), std::nullopt);
}

std::string allowed_origin(const std::string& origins, const std::string& origin) {
  boost::asio::io_context context;
  const auto exchange =
      std::make_shared<Exchange>(asking("origin", origin), context.get_executor(), 1000);
  Access({}, {}, origins).add_cors_headers(*exchange);
  exchange->respond({});
  const std::string head = exchange->take_output();
  static constexpr std::string_view kName = "Access-Control-Allow-Origin: ";
  const size_t at = head.find(kName);
  if (at == std::string::npos) return "";
  return head.substr(at + kName.size(), head.find('\r', at) - at - kName.size());
}

TEST(AccessTest, OriginsThatMayAskAreTold) {
  EXPECT_EQ(allowed_origin("*", "http://a.org"), "http://a.org");
  EXPECT_EQ(allowed_origin("http://a.org,http://b.org", "http://b.org"), "http://b.org");
  EXPECT_EQ(allowed_origin("http://a.org", "http://b.org"), "");
  for (const char* origin :
       {"http://localhost", "https://localhost:80", "http://127.0.0.1:1", "http://[::1]:2"}) {
    EXPECT_EQ(allowed_origin("localhost", origin), origin);
  }
  for (const char* origin :
       {"http://localhost.evil.com", "http://notlocalhost", "localhost", "http://evil.com"}) {
    EXPECT_EQ(allowed_origin("localhost", origin), "") << origin;
  }
}

}  // namespace
}  // namespace forerun
