// What sessions keep while they wait for their clients.
#include <gmock/gmock.h>

#include "frontend/http/session_test_site.h"

namespace tocsin::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kCut = R"(tocsin_connections_closed_total{door="http",reason="memory"})";
const std::string kStart = "POST /length HTTP/1.1\r\nHost: x\r\n";

class SessionMemoryTest : public TestSite {
 protected:
  /// Small requests are answered, whatever others hold.
  void ExpectService() {
    auto client = Connect();
    Send(client, kStart + "Content-Length: 3000\r\n\r\n");
    Send(client, std::string(3'000, 'x'));
    EXPECT_THAT(ReadUntil(client, "length 3000"), StartsWith("HTTP/1.1 200 ")) << "in two pieces";
    Send(client, kStart + "Content-Length: 10000\r\n\r\n" + std::string(10'000, 'x'));
    EXPECT_THAT(ReadUntil(client, "length 10000"), StartsWith("HTTP/1.1 200 ")) << "in one piece";
  }
};

TEST_F(SessionMemoryTest, UnfinishedRequestsHoldNoMoreThanTheBudget) {
  const std::string fields = "X-A: " + std::string(15'000, 'a');
  std::string many_fields;
  for (int i = 0; i < 2'000; ++i) many_fields += "a:b\r\n";
  // Of each there is less than a small request may take.
  const std::string starts[] = {
      kStart + fields,
      kStart + fields + "\r\nContent-Length: 10\r\n\r\n",
      kStart + many_fields + "Content-Length: 10\r\n\r\n",
      kStart + "Content-Length: 60000\r\n\r\n",
      kStart + "Transfer-Encoding: chunked\r\n\r\nF000\r\n" + std::string(0xE000, 'x'),
  };
  for (const std::string& start : starts) {
    std::vector<Client> clients;
    while (clients.size() < 250 && (clients.empty() || clients.back().got.empty())) {
      Send(clients.emplace_back(Connect()), start);
      clients.back().Take();
      EXPECT_LE(budget_.bytes(), budget_.requests_bytes_max());
    }
    EXPECT_THAT(clients.back().got, AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\"overloaded\"")));
    EXPECT_GT(budget_.bytes(), budget_.requests_bytes_max() / 2) << clients.size();
    ExpectService();
    clients.clear();
    RunWhile([&] { return budget_.bytes() > 0; });
  }
}

TEST_F(SessionMemoryTest, AnswersThatNobodyReadsHoldNoMoreThanTheBudget) {
  large_bytes = 60'000;
  client_buffer_bytes = 4096;
  std::vector<Client> clients;
  while (clients.size() < 200 && Metric(kCut) == 0) {
    Send(clients.emplace_back(Connect()), "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_LE(budget_.bytes(), kBudget);
  }
  EXPECT_EQ(Metric(kCut), 1);
  EXPECT_GT(budget_.bytes(), kBudget / 10 * 9);
  client_buffer_bytes = 0;
  ExpectService();
  auto reader = Connect();
  Send(reader, "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_GT(ReadToEnd(reader).size(), large_bytes) << "it takes its answer at once";
  EXPECT_GT(ReadUntil(clients.front(), "x").size(), 0U) << "what was sent stays whole";
  clients.clear();
  RunWhile([&] { return budget_.bytes() > 0; });
}

TEST_F(SessionMemoryTest, AnswersToPipelinedRequestsAreBoundedToo) {
  large_bytes = 10'000;
  client_buffer_bytes = 4096;
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
  auto client = Connect();
  Send(client, requests);
  EXPECT_GT(budget_.bytes(), 0U);
  EXPECT_LT(budget_.bytes(), 32U << 10);
  size_t got = 0;
  RunWhile([&] {
    client.Take();
    got += std::exchange(client.got, {}).size();
    return got < 100 * large_bytes;
  });
}

TEST_F(SessionMemoryTest, AReserveThatWaitsKeepsNothingOfItsBody) {
  auto client = Connect();
  Send(client,
       fmt::format("POST /reserve HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n{}", std::string(50'000, ' ')));
  EXPECT_EQ(Metric("tocsin_http_parked"), 1);
  EXPECT_EQ(budget_.bytes(), 0U);
  Send(client, std::string(10'000, 'x'));  // pipelined after it
  EXPECT_GE(budget_.bytes(), 10'000U);
  net::Charge others(budget_, net::Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(kBudget - budget_.bytes()));
  auto large = Connect();
  Send(large, "POST /reserve HTTP/1.1\r\nHost: x\r\nX: " + std::string(10'000, 'x') + "\r\n\r\n");
  EXPECT_THAT(ReadToEnd(large), StartsWith("HTTP/1.1 503 ")) << "it would keep its header";
}

TEST_F(SessionMemoryTest, AGetTakesNoBodyExceptAnEmptyObject) {
  auto client = Connect();
  Send(client, "GET /small HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n[]");
  EXPECT_THAT(ReadUntil(client, "no body\"}}"), StartsWith("HTTP/1.1 400 "));
  Send(client, "GET /small HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_THAT(ReadUntil(client, "\r\n\r\nsmall"), HasSubstr("HTTP/1.1 200 "));
}

}  // namespace
}  // namespace tocsin::http
