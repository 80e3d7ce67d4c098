#include "http_client/url.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace forerun {
namespace {

TEST(Url, IsReadInParts) {
  const Url plain = parse_url("http://Example.org");
  EXPECT_FALSE(plain.is_tls);
  EXPECT_EQ(plain.origin(), "http://example.org:80");
  EXPECT_EQ(plain.target, "/");
  EXPECT_EQ(plain.text(), "http://example.org/");
  const Url whole = parse_url("https://example.org:8443/a/b?c=d#e");
  EXPECT_TRUE(whole.is_tls);
  EXPECT_EQ(whole.port, "8443");
  EXPECT_EQ(whole.target, "/a/b?c=d");
  EXPECT_EQ(whole.text(), "https://example.org:8443/a/b?c=d");
  const Url six = parse_url("http://[::1]:8080/x");
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.port, "8080");
  EXPECT_EQ(six.text(), "http://[::1]:8080/x");
}

TEST(Url, NonsenseIsRefused) {
  for (const char* wrong : {"", "example.org", "ftp://a", "http://", "http:///x", "http://a:b",
                            "http://a:", "http://user:pass@host/", "http://[::1", "http://[::1]x/",
                            "http://a b/", "http://a/\r\nX: y", "http://a:123456"}) {
    EXPECT_THROW(parse_url(wrong), Error) << wrong;
  }
}

TEST(Url, LocationsLeadOnFromWhereTheyStood) {
  const Url base = parse_url("https://a.org/b/c?d=/e/f");
  const auto joined = [&](const char* location) {
    const Url url = joined_url(base, location);
    return url.origin() + url.target;
  };
  EXPECT_EQ(joined("https://b.org/x"), "https://b.org:443/x");
  EXPECT_EQ(joined("//b.org/x"), "https://b.org:443/x");
  EXPECT_EQ(joined("/x/y"), "https://a.org:443/x/y");
  EXPECT_EQ(joined("x?u=http://z/"), "https://a.org:443/b/x?u=http://z/");
  EXPECT_THROW(joined_url(base, "file:///etc/passwd"), Error);
}

TEST(Url, PathsAreEncoded) {
  EXPECT_EQ(encoded_path("a b/c?d#e%.gguf"), "a%20b/c%3Fd%23e%25.gguf");
  EXPECT_EQ(encoded_path("\xc3\xbc"), "%C3%BC");
}

}  // namespace
}  // namespace forerun
