#include "sinks/webhook/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::webhook {
namespace {

using testing::HasSubstr;

std::string Why(std::string_view url) {
  const auto target = ParseTarget(url);
  if (target) return "fine";
  EXPECT_EQ(target.error().field, "delivery.url");
  EXPECT_EQ(target.error().code, Code::kInvalidArgument);
  return target.error().message;
}

TEST(TargetTest, AUrlHasItsParts) {
  const Target plain = ParseTarget("http://Hooks.Example.com").value();
  EXPECT_FALSE(plain.tls);
  EXPECT_EQ(plain.host, "hooks.example.com");
  EXPECT_EQ(plain.port, 80);
  EXPECT_EQ(plain.authority, "hooks.example.com");
  EXPECT_EQ(plain.resource, "/");

  const Target full = ParseTarget("HTTPS://h.example:8443/a%20b/c?x=1&y=%2F").value();
  EXPECT_TRUE(full.tls);
  EXPECT_EQ(full.port, 8443);
  EXPECT_EQ(full.authority, "h.example:8443");
  EXPECT_EQ(full.resource, "/a%20b/c?x=1&y=%2F");
  EXPECT_EQ(full.Text(), "h.example:8443");

  EXPECT_EQ(ParseTarget("https://h:443/").value().authority, "h");
  EXPECT_EQ(ParseTarget("http://h:/?q").value().resource, "/?q");
  EXPECT_EQ(ParseTarget("http://h?q").value().resource, "/?q");
}

TEST(TargetTest, AnAddressIsTakenAsOne) {
  const Target v4 = ParseTarget("http://192.0.2.7:81/x").value();
  ASSERT_TRUE(v4.address);
  EXPECT_EQ(v4.address->to_string(), "192.0.2.7");
  const Target v6 = ParseTarget("http://[2001:DB8::7]:81/x").value();
  ASSERT_TRUE(v6.address);
  EXPECT_EQ(v6.host, "2001:db8::7");
  EXPECT_EQ(v6.authority, "[2001:db8::7]:81");
  EXPECT_EQ(v6.Text(), "[2001:db8::7]:81");
}

TEST(TargetTest, ANameMayBeginWithAnAddress) {
  const Target target = ParseTarget("http://192.0.2.7.example:81/x").value();
  EXPECT_EQ(target.host, "192.0.2.7.example");
  EXPECT_FALSE(target.address);
  EXPECT_EQ(target.authority, "192.0.2.7.example:81");
  EXPECT_EQ(target.resource, "/x");
  EXPECT_THAT(Why("http://192.0.2.7a?x"), "fine");
  EXPECT_THAT(Why("http://[::1]x/"), HasSubstr("after the host"));
  EXPECT_THAT(Why("http://192.0.2.7%41/"), HasSubstr("without escapes"));
}

TEST(TargetTest, WhatCouldBeReadInTwoWaysIsRefused) {
  EXPECT_THAT(Why("ftp://h/"), HasSubstr("it takes http or https"));
  EXPECT_THAT(Why("http:/h"), HasSubstr("is no URL"));
  EXPECT_THAT(Why("h: "), HasSubstr("is no URL"));
  EXPECT_THAT(Why("http://h/%2"), HasSubstr("is no URL"));
  EXPECT_THAT(Why("http://h/%zz"), HasSubstr("is no URL"));
  EXPECT_THAT(Why("http://h/?a[]=1"), HasSubstr("bracket"));
  EXPECT_THAT(Why("http://[fe80::1%25lo]/"), HasSubstr("no IPv6 address"));
  EXPECT_THAT(Why("http:///x"), HasSubstr("no host"));
  EXPECT_THAT(Why("h/x"), HasSubstr("is no URL"));
  EXPECT_THAT(Why("http://h/a b"), HasSubstr("is no URL"));
  EXPECT_THAT(Why("http://h/\r\nx: y"), HasSubstr("is no URL"));
  EXPECT_THAT(Why("http://h\\@evil/"), HasSubstr("is no URL"));
  EXPECT_THAT(Why("http://user:key@h/"), HasSubstr("user name"));
  EXPECT_THAT(Why("http://user:key@h/"), testing::Not(HasSubstr("key@")));
  EXPECT_THAT(Why("http://@h/"), HasSubstr("user name"));
  EXPECT_THAT(Why("http://h/#x"), HasSubstr("fragment"));
  EXPECT_THAT(Why("http://h%2e/"), HasSubstr("without escapes"));
  EXPECT_THAT(Why("http://h./"), HasSubstr("ends in a dot"));
  EXPECT_THAT(Why("http://h..x/"), HasSubstr("single dots"));
  EXPECT_THAT(Why("http://.h/"), HasSubstr("single dots"));
  EXPECT_THAT(Why("http://-h/"), HasSubstr("it takes a name"));
  EXPECT_THAT(Why("http://h!/"), HasSubstr("it takes a name"));
  EXPECT_THAT(Why("http://h:0/"), HasSubstr("1 to 65535"));
  EXPECT_THAT(Why("http://h:65536/"), HasSubstr("1 to 65535"));
  EXPECT_THAT(Why("http://[v1.x]/"), HasSubstr("no IPv6 address"));
  EXPECT_THAT(Why("http://" + std::string(64, 'a') + "/"), HasSubstr("it takes a name"));
  EXPECT_THAT(Why("http://" + std::string(300, 'a') + "/"), HasSubstr("the most is 253"));
  for (const char* number : {"127.1", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "127.0.0.01", "1.2.3.4.5",
                             "256.1.1.1", "h.0x1", "h.1", "0x"}) {
    EXPECT_THAT(Why(fmt::format("http://{}/", number)), HasSubstr("four decimal numbers")) << number;
  }
}

TEST(TargetTest, AHostThatIsKnownToBeOutOfBoundsIsRefusedAtOnce) {
  const auto check = [](std::string_view url, std::string_view allow) {
    return CheckHost(ParseTarget(url).value(), Networks::Parse(allow).value());
  };
  for (const char* url : {"http://127.0.0.1/", "http://[::1]/", "http://localhost/", "http://a.b.LocalHost/",
                          "http://10.0.0.1/", "http://169.254.169.254/latest"}) {
    const Status refused = check(url, "");
    ASSERT_FALSE(refused) << url;
    EXPECT_EQ(refused.error().field, "delivery.url");
    EXPECT_THAT(refused.error().message, HasSubstr("webhook.allow"));
  }
  EXPECT_TRUE(check("http://127.0.0.1/", "127.0.0.1"));
  EXPECT_TRUE(check("http://localhost/", "127.0.0.1"));
  EXPECT_TRUE(check("http://localhost/", "::1"));
  EXPECT_TRUE(check("http://mylocalhost/", ""));
  EXPECT_TRUE(check("http://8.8.8.8/", ""));
}

}  // namespace
}  // namespace tocsin::webhook
