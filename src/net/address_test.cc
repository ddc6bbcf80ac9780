#include <gtest/gtest.h>

#include "net/listener.h"

namespace tocsin::net {
namespace {

TEST(MakeAddress, TakesHostAndPort) {
  const auto address = MakeAddress("127.0.0.1", 7420);
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "127.0.0.1");
  EXPECT_EQ(address->port, 7420);
  EXPECT_TRUE(address->loopback);
  EXPECT_EQ(address->Text(), "127.0.0.1:7420");
}

TEST(MakeAddress, TakesLocalhostWithoutAResolver) { EXPECT_EQ(MakeAddress("localhost", 0)->Text(), "127.0.0.1:0"); }

TEST(MakeAddress, ShowsIpv6InBrackets) {
  const auto address = MakeAddress("::1", 65535);
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "::1");
  EXPECT_TRUE(address->loopback);
  EXPECT_EQ(address->Text(), "[::1]:65535");
}

TEST(MakeAddress, KnowsWhatIsNotLoopback) {
  EXPECT_FALSE(MakeAddress("0.0.0.0", 1)->loopback);
  EXPECT_FALSE(MakeAddress("192.168.0.7", 1)->loopback);
  EXPECT_FALSE(MakeAddress("::", 1)->loopback);
  EXPECT_TRUE(MakeAddress("127.8.9.1", 1)->loopback);
}

TEST(MakeAddress, RefusesWhatIsNoAddress) {
  for (const char* host : {"", "[::1]", "[127.0.0.1]", "[localhost]", "example.com", "1.2.3", "127.0.0.1:80"}) {
    const auto address = MakeAddress(host, 80);
    EXPECT_FALSE(address) << host;
    if (!address) EXPECT_EQ(address.error().code, Code::kInvalidArgument) << host;
  }
}

}  // namespace
}  // namespace tocsin::net
