#include "net/address.h"

#include <gtest/gtest.h>

namespace tocsin::net {
namespace {

TEST(ParseAddress, TakesHostAndPort) {
  const auto address = ParseAddress("127.0.0.1:7420");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "127.0.0.1");
  EXPECT_EQ(address->port, 7420);
  EXPECT_TRUE(address->loopback);
  EXPECT_EQ(address->Text(), "127.0.0.1:7420");
}

TEST(ParseAddress, TakesLocalhostWithoutAResolver) {
  const auto address = ParseAddress("localhost:0");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->Text(), "127.0.0.1:0");
}

TEST(ParseAddress, TakesIpv6InBrackets) {
  const auto address = ParseAddress("[::1]:65535");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "::1");
  EXPECT_TRUE(address->loopback);
  EXPECT_EQ(address->Text(), "[::1]:65535");
}

TEST(ParseAddress, KnowsWhatIsNotLoopback) {
  EXPECT_FALSE(ParseAddress("0.0.0.0:1")->loopback);
  EXPECT_FALSE(ParseAddress("192.168.0.7:1")->loopback);
  EXPECT_FALSE(ParseAddress("[::]:1")->loopback);
  EXPECT_TRUE(ParseAddress("127.8.9.1:1")->loopback);
}

TEST(ParseAddress, RefusesWhatIsNoAddress) {
  for (const char* text : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:80x", ":80",
                           "::1:80", "[::1:80", "[127.0.0.1]:80", "[localhost]:80", "example.com:80", "1.2.3:80"}) {
    const auto address = ParseAddress(text);
    EXPECT_FALSE(address) << text;
    if (!address) EXPECT_EQ(address.error().code, Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace tocsin::net
