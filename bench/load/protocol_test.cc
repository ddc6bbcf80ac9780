#include <gtest/gtest.h>

#include "load/drivers.h"
#include "load/stamp.h"

namespace tocsin::bench {
namespace {

class Collected : public Receiver {
 public:
  void Delivered(std::string_view token, std::string_view payload) override { jobs.emplace_back(token, payload); }
  std::vector<std::pair<std::string, std::string>> jobs;
};

Options For(const std::string& driver) {
  Options options;
  options.driver = driver;
  options.payload = kStampBytes;
  return options;
}

/// Gives `answer` to the protocol as two reads, split at each byte in turn; the last byte alone makes it whole.
void ExpectWholeAtTheEnd(const std::string& driver, const Request& request, const std::string& answer, uint32_t done,
                         const std::vector<std::pair<std::string, std::string>>& jobs = {}) {
  const std::unique_ptr<Protocol> protocol = MakeProtocol(For(driver));
  for (size_t split = 1; split < answer.size(); ++split) {
    Collected collected;
    Request under_way = request;
    std::string_view first(answer.data(), split);
    EXPECT_FALSE(protocol->Take(first, under_way, collected)) << split;
    std::string_view second(first.data(), answer.size() - split + first.size());
    EXPECT_TRUE(protocol->Take(second, under_way, collected)) << split;
    EXPECT_TRUE(second.empty());
    EXPECT_EQ(under_way.done, done);
    EXPECT_EQ(collected.jobs, jobs);
  }
}

TEST(ProtocolTest, AnswersMayComeInAnyPieces) {
  const Request submit{.call = Call::kSubmit, .jobs = 2};
  const Request reserve{.call = Call::kReserve};
  const Request ack{.call = Call::kAck, .jobs = 2};

  ExpectWholeAtTheEnd("tocsin-resp", submit, "*2\r\n$2\r\nj1\r\n$2\r\nj2\r\n", 2);
  ExpectWholeAtTheEnd("tocsin-resp", ack, "*2\r\n+ok\r\n+stale\r\n", 1);
  ExpectWholeAtTheEnd("tocsin-resp", reserve, "*0\r\n", 0);
  ExpectWholeAtTheEnd(
      "tocsin-resp", reserve,
      "*2\r\n"
      "*9\r\n$2\r\nj1\r\n$2\r\nt1\r\n$3\r\nabc\r\n:1\r\n:16\r\n:17\r\n:18\r\n$-1\r\n*0\r\n"
      "*9\r\n$2\r\nj2\r\n$2\r\nt2\r\n$3\r\n\r\n$\r\n:1\r\n:16\r\n:17\r\n:18\r\n$1\r\nk\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n",
      2, {{"t1", "abc"}, {"t2", "\r\n$"}});

  ExpectWholeAtTheEnd("redis-hash", {.call = Call::kSubmit, .jobs = 2}, ":2\r\n", 2);
  ExpectWholeAtTheEnd("redis-hash", {.call = Call::kAck, .jobs = 2, .parts = 2}, ":2\r\n:2\r\n", 2);
  ExpectWholeAtTheEnd("redis-slot", {.call = Call::kReserve, .parts = 2},
                      "*2\r\n$2\r\ni1\r\n$1\r\nx\r\n*2\r\n$2\r\ni2\r\n$1\r\ny\r\n", 2, {{"i1", "x"}, {"i2", "y"}});

  ExpectWholeAtTheEnd("beanstalkd", {.call = Call::kSubmit, .jobs = 2, .parts = 2}, "INSERTED 1\r\nINSERTED 2\r\n", 2);
  ExpectWholeAtTheEnd("beanstalkd", {.call = Call::kReserve, .parts = 3},
                      "RESERVED 1 3\r\nabc\r\nRESERVED 22 2\r\n\r\n\r\nTIMED_OUT\r\n", 2,
                      {{"1", "abc"}, {"22", "\r\n"}});
  ExpectWholeAtTheEnd("beanstalkd", {.call = Call::kAck, .jobs = 1, .parts = 1}, "DELETED\r\n", 1);

  ExpectWholeAtTheEnd("tocsin-http", reserve,
                      "HTTP/1.1 200 OK\r\nContent-Length: 51\r\n\r\n"
                      R"({"jobs":[{"id":"j1","token":"t1","payload":"abc"}]})",
                      1, {{"t1", "abc"}});
}

TEST(ProtocolTest, WhatWasStampedIsRead) {
  Template made;
  made.Text("<").Payload(0, kStampBytes + 3).Text("|").Payload(1, kStampBytes).Text(">").Extra(4);
  std::string out;
  made.Render(out, {.first = 0xABCDEF, .count = 2, .due_ms = 1'800'000'000'123}, 42);
  EXPECT_TRUE(out.ends_with(">0042"));
  const Stamp first = ReadStamp(std::string_view(out).substr(1, kStampBytes + 3));
  const Stamp second = ReadStamp(std::string_view(out).substr(kStampBytes + 5, kStampBytes));
  EXPECT_EQ(first.number, 0xABCDEFU);
  EXPECT_EQ(second.number, 0xABCDF0U);
  EXPECT_EQ(second.due_ms, 1'800'000'000'123);
}

}  // namespace
}  // namespace tocsin::bench
