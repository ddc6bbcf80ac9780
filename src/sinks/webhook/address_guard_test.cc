#include "sinks/webhook/address_guard.h"

#include <gtest/gtest.h>

namespace tocsin::webhook {
namespace {

namespace ip = boost::asio::ip;

bool Refused(const std::string& address, const std::string& allow = "") {
  return WhyRefused(ip::make_address(address), Networks::Parse(allow).value()).has_value();
}

TEST(AddressGuardTest, PublicAddressesPass) {
  for (const char* address : {"1.1.1.1",           "8.8.8.8",
                              "9.255.255.255",     "11.0.0.0",
                              "100.63.255.255",    "100.128.0.0",
                              "126.255.255.255",   "128.0.0.0",
                              "169.253.255.255",   "169.255.0.0",
                              "172.15.255.255",    "172.32.0.0",
                              "192.0.1.0",         "192.167.255.255",
                              "192.169.0.0",       "198.17.255.255",
                              "198.20.0.0",        "223.255.255.255",
                              "168.63.129.15",     "2606:4700::1111",
                              "2a00:1450:4001::1", "2001:4860:4860::8888",
                              "2002:808:808::1",   "64:ff9b::808:808",
                              "::ffff:8.8.8.8"}) {
    EXPECT_FALSE(Refused(address)) << address;
  }
}

TEST(AddressGuardTest, EverythingElseIsRefused) {
  for (const char* address :
       {"0.0.0.0",         "0.1.2.3",     "10.0.0.0",        "10.255.255.255",  "100.64.0.0",     "100.100.100.200",
        "100.127.255.255", "127.0.0.0",   "127.0.0.1",       "127.255.255.255", "168.63.129.16",  "169.254.0.0",
        "169.254.169.254", "172.16.0.0",  "172.31.255.255",  "192.0.0.0",       "192.0.0.192",    "192.0.2.1",
        "192.88.99.1",     "192.168.0.0", "192.168.255.255", "198.18.0.0",      "198.19.255.255", "198.51.100.1",
        "203.0.113.1",     "224.0.0.1",   "239.255.255.255", "240.0.0.0",       "254.1.1.1",      "255.255.255.255"}) {
    EXPECT_TRUE(Refused(address)) << address;
  }
  for (const char* address :
       {"::",      "::1",     "::2",     "100::1",       "2001::1", "2001:db8::1",   "2001:2::1", "2001:10::1",
        "3fff::1", "4000::1", "5f00::1", "64:ff9b:1::1", "fc00::1", "fd00:ec2::254", "fdff::1",   "fe80::1",
        "febf::1", "fec0::1", "ff02::1", "ffff::1",      "1000::1", "8000::1"}) {
    EXPECT_TRUE(Refused(address)) << address;
  }
}

TEST(AddressGuardTest, AnIpv4AddressInAnIpv6OneIsSeen) {
  for (const char* address :
       {"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0", "::127.0.0.1", "::10.0.0.1",
        "64:ff9b::127.0.0.1", "64:ff9b::10.1.2.3", "64:ff9b::169.254.169.254", "2002:7f00:1::", "2002:a00:1::1",
        "2002:c0a8:101::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::", "2001::f5ff:fffe", "2606::5efe:127.0.0.1",
        "2606::200:5efe:10.0.0.1"}) {
    EXPECT_TRUE(Refused(address)) << address;
  }
}

TEST(AddressGuardTest, TheListOfTheServerLetsAddressesPass) {
  EXPECT_FALSE(Refused("127.0.0.1", "127.0.0.0/8"));
  EXPECT_FALSE(Refused("127.0.0.1", "127.0.0.1"));
  EXPECT_TRUE(Refused("127.0.0.2", "127.0.0.1"));
  EXPECT_FALSE(Refused("10.1.255.1", "127.0.0.0/8, 10.1.0.0/16"));
  EXPECT_TRUE(Refused("10.2.0.0", "127.0.0.0/8,10.1.0.0/16"));
  EXPECT_FALSE(Refused("::ffff:10.1.2.3", "10.1.0.0/16"));
  EXPECT_FALSE(Refused("::1", "::1"));
  EXPECT_TRUE(Refused("::1", "127.0.0.0/8"));
  EXPECT_FALSE(Refused("fd12::1", "fd00::/8"));
  EXPECT_FALSE(Refused("fe80::1%5", "fe80::/10"));
  EXPECT_FALSE(Refused("10.0.0.1", "0.0.0.0/0"));
  EXPECT_TRUE(Refused("64:ff9b::10.0.0.1", "10.0.0.0/8")) << "a translator is somebody else's";
}

TEST(AddressGuardTest, AListThatIsNoneIsRefusedAndSaysWhy) {
  for (const char* text : {"x", "10.0.0.0/33", "10.0.0.0/", ",", "127.1/8", "0x7f.0.0.1", "fd00::/129",
                           "10.0.0.0/8 11.0.0.0/8", "localhost", "/8", "10.0.0.0/-1"}) {
    const auto parsed = Networks::Parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().field, "webhook.allow");
  }
  EXPECT_NE(Networks::Parse("10.1.2.3/16").error().message.find("10.1.0.0/16"), std::string::npos);
  EXPECT_NE(Networks::Parse("fd12::/8").error().message.find("fd00::/8"), std::string::npos);
  EXPECT_TRUE(Networks::Parse("")) << "none";
}

}  // namespace
}  // namespace tocsin::webhook
