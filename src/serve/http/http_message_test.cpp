#include "serve/http/http_message.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(HttpMessageTest, TargetsArePathsAndQueries) {
  HttpRequest request{.method = "GET", .path = ""};
  ASSERT_TRUE(parse_target("/slots/1%20a?action=save&x=a+b%2B&empty", request));
  EXPECT_EQ(request.path, "/slots/1 a");
  EXPECT_EQ(request.query["action"], "save");
  EXPECT_EQ(request.query["x"], "a b+");
  EXPECT_EQ(request.query["empty"], "");
  for (const char* target : {"", "no/slash", "/%", "/%2", "/%zz", "/?a=%4"}) {
    EXPECT_FALSE(parse_target(target, request)) << target;
  }
}

TEST(HttpMessageTest, HeadsSayHowLongABodyIs) {
  const HttpResponse response{.status = 404, .body = "abc", .headers = {{"X-One", "1"}}};
  const std::string head = head_of(response, {.keeps_alive = false});
  EXPECT_TRUE(head.starts_with("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_NE(head.find("Content-Length: 3\r\n"), std::string::npos);
  EXPECT_NE(head.find("X-One: 1\r\n"), std::string::npos);
  EXPECT_TRUE(head.ends_with("Connection: close\r\n\r\n"));
  EXPECT_NE(head_of(response, {.is_chunked = true}).find("Transfer-Encoding: chunked\r\n"),
            std::string::npos);
}

}  // namespace
}  // namespace forerun
