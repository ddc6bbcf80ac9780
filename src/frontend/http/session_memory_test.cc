// What sessions keep while they wait for their clients.
#include <gmock/gmock.h>

#include "frontend/http/session_test_site.h"

namespace tocsin::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kCut = R"(tocsin_connections_closed_total{door="http",reason="memory"})";
const std::string kStart = "POST /length HTTP/1.1\r\nHost: x\r\n";

class SessionMemoryTest : public TestSite {
 protected:
  /// Puts a job in place that is `bytes` large.
  void PutJob(Client& client, const std::string& id, size_t bytes) {
    const std::string body = fmt::format(R"({{"id":"{}","payload":"{}"}})", id, std::string(bytes, 'x'));
    Send(client,
         fmt::format("POST /v1/topics/t/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
    EXPECT_THAT(ReadUntil(client, "]}"), StartsWith("HTTP/1.1 201 "));
  }
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
  EXPECT_GT(budget_.bytes(), kBudget / 10 * 7) << "one address leaves a quarter to others";
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

TEST_F(SessionMemoryTest, WhatIsPipelinedBehindARequestHoldsNoMoreThanTheBudget) {
  const std::string request = "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
  std::vector<Client> clients;
  while (clients.size() < 250 && (clients.empty() || clients.back().got.empty())) {
    Send(clients.emplace_back(Connect()), request + std::string(50'000, 'x'));
    clients.back().Take();
    EXPECT_LE(budget_.bytes(), budget_.requests_bytes_max());
  }
  EXPECT_THAT(clients.back().got, AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\"overloaded\"")));
  EXPECT_GT(budget_.bytes(), budget_.requests_bytes_max() / 2) << clients.size();
  ExpectService();
  auto client = Connect();
  Send(client, "GET /small HTTP/1.1\r\nHost: x\r\n\r\nGET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(ReadToEnd(client), HasSubstr("smallHTTP/1.1 200 ")) << "a few requests are still answered";
}

TEST_F(SessionMemoryTest, AReaderThatTricklesIsClosedIfOthersNeedTheMemory) {
  net::Charge others(budget_, net::Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(kBudget / 2));
  large_bytes = 1 << 20;
  client_buffer_bytes = 4096;
  auto slow = Connect();
  Send(slow, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  for (int round = 0; round < 3 && !slow.closed; ++round) {
    const size_t until = slow.got.size() + 70'000;  // more than 64 KiB, and less than an eighth
    RunWhile([&] {
      slow.Take();
      return slow.got.size() < until && !slow.closed;
    });
    Pass(Millis(4'900));
  }
  EXPECT_EQ(Metric("tocsin_http_connections"), 0);
  EXPECT_EQ(budget_.bytes(), others.bytes());
  large_bytes = 1024;
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

TEST_F(SessionMemoryTest, JobsThatAreLookedUpNeedRoomIfTheyAreLarge) {
  auto client = Connect();
  PutJob(client, "small", 1'000);
  PutJob(client, "large", 100'000);
  RunWhile([&] { return budget_.bytes() > 0; });  // a worker has parsed it
  net::Charge others(budget_, net::Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(kBudget));
  Send(client, "GET /v1/topics/t/jobs/large HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(ReadUntil(client, "}}"), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\"overloaded\"")));
  Send(client, "GET /v1/topics/t/jobs/small HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(ReadUntil(client, "}"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(budget_.bytes(), kBudget);
  others.Clear();
  Send(client, "GET /v1/topics/t/jobs/large HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(ReadUntil(client, "}"), StartsWith("HTTP/1.1 200 "));
  RunWhile([&] { return budget_.bytes() > 0; });
}

TEST_F(SessionMemoryTest, APageIsAsLargeAsThereIsRoom) {
  constexpr size_t kJobs = 20;
  auto client = Connect();
  for (size_t i = 0; i < kJobs; ++i) PutJob(client, std::to_string(i), 100'000);
  net::Charge others(budget_, net::Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(kBudget - (1 << 20)));
  const auto count = [](std::string_view text, std::string_view word) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; at += word.size()) ++found;
    return found;
  };
  size_t listed = 0;
  std::string path = "/v1/topics/t/jobs";
  for (size_t pages = 0; listed < kJobs; ++pages) {
    ASSERT_LT(pages, kJobs);
    auto reader = Connect();
    Send(reader, "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const std::string page = ReadToEnd(reader);
    ASSERT_THAT(page, StartsWith("HTTP/1.1 200 "));
    const size_t jobs = count(page, "\"id\":");
    ASSERT_GE(jobs, 1U);
    EXPECT_LE(jobs * 200'000, 1U << 20) << "the jobs and the answer";
    listed += jobs;
    const size_t cursor = page.find("\"cursor\":\"");
    if (cursor == std::string::npos) break;
    const std::string text = page.substr(cursor + 10);
    path = "/v1/topics/t/jobs?cursor=" + text.substr(0, text.find('"'));
  }
  EXPECT_EQ(listed, kJobs);
  RunWhile([&] { return budget_.bytes() > others.bytes(); });
}

TEST_F(SessionMemoryTest, AListOfTopicsIsNeverRefusedByAnIdleServer) {
  const std::string token = AdmitOneToken();
  const std::string get = fmt::format("GET /v1/topics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n", token);
  auto client = Connect();
  size_t topics = 0;
  // In all, they may take from a half of the budget to more than all of it.
  for (const size_t percent : {60, 74, 80, 95, 110}) {
    std::string posts;
    for (; topics * 3328 < kBudget / 100 * percent; ++topics) {
      posts += fmt::format(
          "POST /v1/topics/t{}/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: "
          "15\r\n\r\n{{\"payload\":\"p\"}}",
          topics, token);
    }
    Send(client, posts + "GET /small HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(ReadUntil(client, "\r\n\r\nsmall"), Not(HasSubstr("HTTP/1.1 4")));
    Send(client, get);
    const std::string list = ReadUntil(client, "]}");
    EXPECT_THAT(list.substr(0, 20), StartsWith("HTTP/1.1 200 ")) << percent;
    EXPECT_THAT(list, HasSubstr(fmt::format("\"t{}\"", topics - 1)));
    Settle();
    EXPECT_EQ(budget_.bytes(), 0U);
  }
  net::Charge others(budget_, net::Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(2 * kBudget));
  Send(client, get);
  EXPECT_THAT(ReadUntil(client, "}}"), StartsWith("HTTP/1.1 503 ")) << "one such answer at a time";
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
