// Every spelling of an address of this machine or of a private network that people have found to get past a check. A
// listener stands on loopback, names are resolved as unkindly as can be, and nobody may come.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include "sinks/webhook/receiver_test_site.h"
#include "sinks/webhook/sink_test_site.h"

namespace tocsin::webhook {
namespace {

namespace ip = boost::asio::ip;

constexpr const char* kHosts[] = {
    // Loopback, as IPv4
    "127.0.0.1",
    "127.0.0.2",
    "127.1.2.3",
    "127.255.255.254",
    "127.1",
    "127.0.1",
    "127.000.000.001",
    "127.0.0.01",
    "2130706433",
    "02130706433",
    "017700000001",
    "0177.0.0.1",
    "0177.0.0.01",
    "00000177.0.0.1",
    "0x7f.0.0.1",
    "0x7f.1",
    "0X7F.0X0.0X0.0X1",
    "0x7f000001",
    "0x7f.0x0.0x0.0x1",
    "0x000000007f.1",
    "127.0.0.0x1",
    "127.0x1",
    "127.0.0.1.",
    "127.1.",
    "0x7f000001.",
    "2130706433.",
    "127..1",
    "127.0.0.1..",
    ".127.0.0.1",
    "127.0.0.1%00",
    "127.0.0.1%2e",
    "127%2e0%2e0%2e1",
    "%31%32%37.0.0.1",
    "127.0.0.1%0a",
    "127.0.0.1%20",
    "%6c%6f%63%61%6c%68%6f%73%74",
    "4294967297",
    "127.65537",
    "383.0.0.1",
    "1.2.3.4@127.0.0.1",
    "example.com@127.0.0.1",
    "example.com:80@127.0.0.1",
    "127.0.0.1\\@example.com",
    "127.0.0.1\t",
    "127.0.0.1 ",
    "127.0.0.1\r\nhost: x",
    "127.0.0.1#@example.com",
    // The unspecified address reaches this machine too
    "0.0.0.0",
    "0",
    "0.0",
    "0x0",
    "00",
    "000.000.000.000",
    "0.0.0.0.",
    "0.0.0.1",
    // Other digits and dots
    "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1",
    "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1",
    ("127\xe3\x80\x82"
     "0.0.1"),
    ("127.0.0\xef\xbc\x8e"
     "1"),
    ("127\xef\xbd\xa1"
     "0\xef\xbd\xa1"
     "0\xef\xbd\xa1"
     "1"),
    "\xd9\xa1\xd9\xa2\xd9\xa7.0.0.1",
    "\xe2\x93\x9b\xe2\x93\x9e\xe2\x93\x92\xe2\x93\x90\xe2\x93\x9b\xe2\x93\x97\xe2\x93\x9e\xe2\x93\xa2\xe2\x93\xa3",
    "xn--127-0-0-1",
    ("l\xc3\xb6"
     "calhost"),
    // IPv6
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::0001]",
    "[0::1]",
    "[::]",
    "[0:0:0:0:0:0:0:0]",
    "[::ffff:127.0.0.1]",
    "[::FFFF:7F00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::ffff:7f00:0001]",
    "[::ffff:0.0.0.0]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:7f00:0001::1]",
    "[2001:0:7f00:1:0:0:0:0]",
    "[2001:0:0:0:0:0:80ff:fffe]",
    "[fe80::1%25lo]",
    "[::1%25lo]",
    "[::1%lo]",
    "[::1]:",
    "[::ffff:127.1]",
    "[::ffff:0177.0.0.1]",
    "[0::ffff:127.0.0.1]",
    "::1",
    "[::1",
    "[[::1]]",
    "[127.0.0.1]",
    "[v1.127.0.0.1]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    // Names
    "localhost",
    "LOCALHOST",
    "LocalHost",
    "localhost.",
    "foo.localhost",
    "localhost.localdomain",
    "ip6-localhost",
    "127.0.0.1.nip.example",
    "localtest.example",
    "metadata.google.internal",
    "xn--localhost",
    "a_b.example",
    // Private networks and metadata services
    "10.0.0.1",
    "10.1",
    "167772161",
    "012.0.0.1",
    "0xa.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.1",
    "3232235521",
    "0xc0a80001",
    "169.254.169.254",
    "169.254.43518",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "100.64.0.1",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
};

/// What the C library makes of numbers, and loopback for every name.
Result<Addresses> Unkindly(const std::string& name) {
  in_addr number{};
  if (inet_aton(name.c_str(), &number) != 0) return Addresses{ip::address_v4(ntohl(number.s_addr))};
  return Addresses{ip::address_v4::loopback(), ip::address_v6::loopback(), ip::make_address("::ffff:127.0.0.1"),
                   ip::make_address("10.0.0.1")};
}

Options Allowing(const std::string& allow) {
  Options options = SinkSite::LoopbackAllowed();
  options.allow = allow;
  options.find_addresses = Unkindly;
  return options;
}

/// How many of the hosts get as far as a request; the others are refused at once, or when their addresses are known.
size_t Reaching(SinkSite& site, uint16_t port) {
  size_t reaching = 0;
  for (const std::string host : kHosts) {
    for (const std::string& url : {fmt::format("http://{}:{}/", host, port), fmt::format("http://{}/x?y", host),
                                   fmt::format("https://{}:{}", host, port), fmt::format("http:{}:{}/", host, port),
                                   fmt::format("http:////{}:{}/", host, port)}) {
      const Topic topic = WebhookTopic(url, {{"timeout_ms", "1000"}});
      if (const Status checked = site.factory().Check(topic); !checked) {
        EXPECT_EQ(checked.error().field, "delivery.url") << url;
        continue;
      }
      const Delivered delivered = site.Send(site.Open(topic));
      if (delivered.reason.find("webhook.allow") != std::string::npos) continue;
      ++reaching;
      ADD_FAILURE() << url << ": " << delivered.reason;
    }
  }
  return reaching;
}

TEST(SsrfTest, TheCorpusIsLargeEnough) { EXPECT_GE(std::size(kHosts), 60); }

TEST(SsrfTest, NoSpellingReachesThisMachineOrAPrivateNetwork) {
  Receiver receiver([](const Received&) { return Reply{}; });
  Receiver receiver6([](const Received&) { return Reply{}; }, nullptr, "::1");
  SinkSite site(Allowing(""));
  EXPECT_EQ(Reaching(site, receiver.port()), 0);
  EXPECT_EQ(Reaching(site, receiver6.port()), 0);
  EXPECT_EQ(receiver.connections(), 0);
  EXPECT_EQ(receiver6.connections(), 0);
}

// The listener and the resolver are there: where the operator allows it, they are reached.
TEST(SsrfTest, WhatIsAllowedIsReached) {
  Receiver receiver([](const Received&) { return Reply{}; });
  SinkSite site(Allowing("127.0.0.0/8"));
  for (const char* host : {"127.0.0.1", "localhost", "foo.localhost", "127.0.0.1.nip.example", "[::ffff:127.0.0.1]"}) {
    Sink& sink = site.Open(WebhookTopic(fmt::format("http://{}:{}/", host, receiver.port())));
    EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kConfirmed) << host << site.outcomes().back()->reason;
  }
  EXPECT_EQ(receiver.connections(), 5);
  const Status numbers = site.factory().Check(WebhookTopic("http://127.1/"));
  EXPECT_FALSE(numbers) << "an address has one spelling, allowed or not";
}

}  // namespace
}  // namespace tocsin::webhook
