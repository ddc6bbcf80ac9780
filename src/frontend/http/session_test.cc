#include "frontend/http/session.h"

#include <deque>

#include <gmock/gmock.h>

#include "frontend/http/session_test_site.h"
#include "frontend/http/unzip_for_test.h"

namespace tocsin::http {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr Millis kSecond{1'000};
const std::string kGetSmall = "GET /small HTTP/1.1\r\nHost: x\r\n\r\n";

const std::string kGetLarge = "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";

std::string Post(std::string_view path, std::string_view body) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", path, body.size(), body);
}

class SessionTest : public TestSite {};

TEST_F(SessionTest, AHeaderThatIsLateIsAnsweredAndTheConnectionClosed) {
  auto client = Connect();
  Send(client, "GET /small HTTP/1.1\r\nHo");
  Pass(9 * kSecond);
  Send(client, "st: x\r\n");  // another byte now and then is no reason to wait for longer
  Pass(kSecond);
  const std::string answer = ReadToEnd(client);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(answer, AllOf(HasSubstr("Connection: close\r\n"), HasSubstr("\"timed_out\""), HasSubstr("10 s")));
}

TEST_F(SessionTest, ARedisClientIsToldAtOnceThatThisIsHttp) {
  auto client = Connect();
  Send(client, "*1\r\n$4\r\nPING\r\n");
  EXPECT_THAT(ReadToEnd(client), HasSubstr("resp.listen"));
}

TEST_F(SessionTest, LinesThatEndInLfAloneAreRefusedAtOnce) {
  for (const std::string_view request :
       {"GET /small HTTP/1.1\nHost: x\n\n", "GET /small HTTP/1.1\r\nHost: x\n", "\n"}) {
    auto client = Connect();
    Send(client, request);
    EXPECT_THAT(ReadToEnd(client), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("CR LF"))) << request;
  }
  auto client = Connect();  // the CR and the LF come in two pieces
  Send(client, "GET /small HTTP/1.1\r");
  Pass(kSecond);
  Send(client, "\nHost: x\r\n\r\n");
  EXPECT_THAT(ReadUntil(client, "small"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(SessionTest, ABodyThatIsLateIsAnsweredAndTheConnectionClosed) {
  auto client = Connect();
  Send(client, "POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf");
  Pass(59 * kSecond);
  EXPECT_EQ(Metric("tocsin_http_connections"), 1);
  Pass(kSecond);
  EXPECT_THAT(ReadToEnd(client), AllOf(StartsWith("HTTP/1.1 408 "), HasSubstr("body")));
}

TEST_F(SessionTest, ALargeBodyMayTakeLongAsLongAsItMoves) {
  auto client = Connect();
  constexpr size_t kPiece = 64 << 10;
  Send(client, fmt::format("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", 5 * kPiece));
  for (int i = 0; i < 5; ++i) {
    Pass(50 * kSecond);
    Send(client, std::string(kPiece, 'x'));
  }
  EXPECT_THAT(ReadUntil(client, "length 327680"), StartsWith("HTTP/1.1 200 "));

  Send(client, fmt::format("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", 5 * kPiece));
  Pass(50 * kSecond);
  Send(client, std::string(kPiece / 4, 'x'));
  Pass(10 * kSecond);
  EXPECT_THAT(ReadToEnd(client), StartsWith("HTTP/1.1 408 "));
}

TEST_F(SessionTest, AnIdleConnectionIsClosedWithoutAWord) {
  auto fresh = Connect();
  auto used = Connect();
  Send(used, kGetSmall);
  ReadUntil(used, "small");
  Pass(59 * kSecond);
  EXPECT_FALSE(IsClosed(fresh));
  EXPECT_FALSE(IsClosed(used));
  Pass(kSecond);
  EXPECT_TRUE(IsClosed(fresh));
  EXPECT_TRUE(IsClosed(used));
}

TEST_F(SessionTest, AClientThatDoesNotReadIsClosedAndItsMemoryGivenBack) {
  large_bytes = 3 << 20;
  client_buffer_bytes = 4096;
  auto client = Connect();
  Send(client, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(Metric("tocsin_transfer_memory_bytes"), 3 << 20);
  Pass(59 * kSecond);
  EXPECT_EQ(Metric("tocsin_http_connections"), 1);
  Pass(kSecond);
  EXPECT_EQ(Metric("tocsin_http_connections"), 0);
  EXPECT_EQ(Metric("tocsin_transfer_memory_bytes"), 0);
}

TEST_F(SessionTest, AClientThatReadsSlowlyGetsItsAnswer) {
  large_bytes = 3 << 20;
  client_buffer_bytes = 4096;
  auto client = Connect();
  Send(client, "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  for (size_t want = 512 << 10; want < large_bytes; want += 512 << 10) {
    RunWhile([&] {
      client.Take();
      return client.got.size() < want && !client.closed;
    });
    Pass(50 * kSecond);
  }
  EXPECT_GT(ReadToEnd(client).size(), large_bytes);
}

TEST_F(SessionTest, ALargeTransferHasToHurryWhileOthersNeedTheMemory) {
  large_bytes = 1 << 20;
  client_buffer_bytes = 4096;
  auto reader = Connect();
  Send(reader, kGetLarge);
  auto writer = Connect();
  Send(writer, "POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  Pass(4 * kSecond);
  EXPECT_EQ(Metric("tocsin_http_connections"), 2) << "there is room";
  net::Charge others(budget_, net::Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(kBudget / 2));
  large_bytes = 1024;
  auto small = Connect();
  Send(small, "POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n");
  Pass(kSecond);
  EXPECT_THAT(ReadToEnd(writer), StartsWith("HTTP/1.1 408 "));
  Pass(10 * kSecond);
  EXPECT_EQ(Metric("tocsin_http_connections"), 1) << "a small one has as long as ever";
}

TEST_F(SessionTest, BodiesBeyondTheBudgetAreRefusedBeforeTheyAreRead) {
  auto first = Connect();
  Send(first, "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 2200000\r\n\r\n");
  EXPECT_EQ(Metric("tocsin_transfer_memory_bytes"), 2'200'000);

  auto large = Connect();
  Send(large, "POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_THAT(ReadToEnd(large), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\"overloaded\""),
                                      HasSubstr("Connection: close"), HasSubstr("4194304")));
  auto chunked = Connect();
  Send(chunked, "POST /length HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n80000\r\n" +
                    std::string(0x80000, 'x') + "\r\n");
  EXPECT_THAT(ReadToEnd(chunked), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\"overloaded\"")));
  auto small = Connect();
  Send(small, Post("/length", std::string(net::Budget::kSmallBytes, 'x')));
  EXPECT_THAT(ReadUntil(small, "length 65536"), StartsWith("HTTP/1.1 200 "));

  first.socket.close();
  Settle();
  EXPECT_EQ(Metric("tocsin_transfer_memory_bytes"), 0);
  auto again = Connect();
  Send(again, Post("/length", std::string(1'000'000, 'x')));
  EXPECT_THAT(ReadUntil(again, "length 1000000"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(SessionTest, LargeBodiesAreParsedElsewhereAndAnsweredInOrder) {
  const std::string large = R"({"payload":")" + std::string(500'000, 'x') + "\"}";
  auto client = Connect();
  for (int i = 0; i < 3; ++i) {
    Send(client, Post("/v1/topics/t/jobs", large) + kGetSmall);
    EXPECT_THAT(ReadUntil(client, "\r\n\r\nsmall"), AllOf(StartsWith("HTTP/1.1 201 "), HasSubstr("accepted")));
  }
  Send(client, Post("/v1/topics/t/jobs", large + "x") + kGetSmall);
  EXPECT_THAT(ReadUntil(client, "\r\n\r\nsmall"), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("at byte")));
  {
    auto leaving = Connect();
    Send(leaving, Post("/v1/topics/t/jobs", large));
  }
  RunWhile([&] { return Metric("tocsin_http_connections") > 1 || Metric("tocsin_transfer_memory_bytes") > 0; });
}

TEST_F(SessionTest, ABodyIsChargedUntilItIsAnswered) {
  auto client = Connect();
  Send(client, Post("/hold", std::string(100'000, 'x')));
  RunWhile([&] { return held.empty(); });
  EXPECT_EQ(Metric("tocsin_transfer_memory_bytes"), 100'000);
  held.front().Send({.body = "done"});
  ReadUntil(client, "done");
  Settle();
  EXPECT_EQ(Metric("tocsin_transfer_memory_bytes"), 0);
}

TEST_F(SessionTest, AnAnswerBeyondTheBudgetIsReplacedByARefusal) {
  large_bytes = kBudget / 4 * 3;
  client_buffer_bytes = 4096;
  auto holder = Connect();
  Send(holder, kGetLarge);
  auto client = Connect();
  large_bytes = net::Budget::kSmallBytes + 1;
  Send(client, kGetLarge);
  EXPECT_THAT(ReadUntil(client, "}}"), AllOf(StartsWith("HTTP/1.1 503 "), Not(HasSubstr("Connection: close"))));
  Send(client, kGetSmall);
  EXPECT_THAT(ReadUntil(client, "small"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(SessionTest, OneAnswerAtATimeMayBeLargerThanTheBudget) {
  large_bytes = kBudget + 1;
  client_buffer_bytes = 4096;
  auto first = Connect();
  Send(first, "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(Metric("tocsin_transfer_memory_bytes"), kBudget + 1);
  client_buffer_bytes = 0;
  auto second = Connect();
  Send(second, kGetLarge);
  EXPECT_THAT(ReadUntil(second, "}}"), StartsWith("HTTP/1.1 503 "));
  Send(second, Post("/length", std::string(1'000'000, 'x')));
  EXPECT_THAT(ReadUntil(second, "length 1000000"), StartsWith("HTTP/1.1 200 ")) << "it takes nothing from the others";
  EXPECT_GT(ReadToEnd(first).size(), large_bytes);
  Send(second, "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(ReadToEnd(second), StartsWith("HTTP/1.1 200 "));
}

TEST_F(SessionTest, NothingIsDoneWhereTheAnswerWouldFindNoRoom) {
  std::string jobs;
  for (int i = 0; i < 2'000; ++i) jobs += fmt::format(R"({}{{"id":"{}"}})", i == 0 ? "" : ",", i);
  const std::string submit = Post("/v1/topics/t/jobs", R"({"jobs":[)" + jobs + "]}");
  auto client = Connect();
  const auto fill = [&] {
    large_bytes = kBudget / 4 * 3;
    client_buffer_bytes = 4096;
    auto holder = Connect();
    Send(holder, kGetLarge);
    return holder;
  };
  const auto empty = [&](Client holder) {
    holder.socket.close();
    Settle();
    EXPECT_EQ(Metric("tocsin_transfer_memory_bytes"), 0);
  };

  auto holder = fill();
  Send(client, submit);
  EXPECT_THAT(ReadUntil(client, "}}"), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("overloaded")));
  empty(std::move(holder));
  Send(client, submit);
  EXPECT_THAT(ReadUntil(client, "]}"),
              AllOf(StartsWith("HTTP/1.1 201 "), HasSubstr("accepted"), Not(HasSubstr("duplicate"))));

  Send(client, Post("/v1/topics/t/reserve", R"({"max":2000,"wait_ms":10000})"));
  std::string tokens;
  const std::string reserved = ReadUntil(client, "]}");
  for (size_t at = 0; (at = reserved.find("\"token\":", at)) != std::string::npos;) {
    tokens += (tokens.empty() ? "" : ",") + reserved.substr(at += 8, 26);
  }
  const std::string ack = Post("/v1/topics/t/ack", R"({"tokens":[)" + tokens + "]}");
  holder = fill();
  Send(client, ack);
  EXPECT_THAT(ReadUntil(client, "}}"), StartsWith("HTTP/1.1 503 "));
  empty(std::move(holder));
  Send(client, ack);
  EXPECT_THAT(ReadUntil(client, "]}"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\"ok\""), Not(HasSubstr("\"stale\""))));
}

TEST_F(SessionTest, AReserveThatWaitsIsServedWhenThereIsRoom) {
  auto client = Connect();
  Send(client, Post("/v1/topics/t/jobs", R"({"jobs":[{"payload":")" + std::string(100'000, 'x') + R"("}]})"));
  EXPECT_THAT(ReadUntil(client, "]}"), StartsWith("HTTP/1.1 201 "));
  RunWhile([&] { return budget_.bytes() > 0; });  // a worker has parsed it
  net::Charge others(budget_, net::Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(kBudget));
  Send(client, Post("/v1/topics/t/reserve", "{}"));
  EXPECT_THAT(ReadUntil(client, "}}"), StartsWith("HTTP/1.1 503 "));
  Send(client, Post("/v1/topics/t/reserve", R"({"wait_ms":60000})"));
  RunWhile([&] { return Metric("tocsin_http_parked") != 1; });
  Pass(kSecond);
  EXPECT_EQ(Metric("tocsin_http_parked"), 1);
  EXPECT_EQ(store_.Topics()[0].delivered, 0U);
  others.Clear();
  EXPECT_THAT(ReadUntil(client, "]}"), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\"attempt\":1")));
  Settle();
  EXPECT_EQ(budget_.bytes(), 0U);
}

TEST_F(SessionTest, ASmallJobForWhoseAnswerThereIsNoRoomIsNotClaimed) {
  auto client = Connect();
  Send(client, Post("/v1/topics/t/jobs", R"({"jobs":[{"payload":")" + std::string(20'000, 'x') + R"("}]})"));
  EXPECT_THAT(ReadUntil(client, "]}"), StartsWith("HTTP/1.1 201 "));
  std::deque<net::Charge> others;  // small ones pass the budget, up to a quarter more
  for (size_t bytes = 0; bytes < kBudget / 4 * 5; bytes += net::Budget::kSmallBytes) {
    ASSERT_TRUE(others.emplace_back(budget_, net::Charge::For::kAnswer).Reach(net::Budget::kSmallBytes));
  }
  Send(client, Post("/v1/topics/t/reserve", "{}"));
  EXPECT_THAT(ReadUntil(client, "}}"), StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(store_.Topics()[0].delivered, 0U);
  others.clear();
  Send(client, Post("/v1/topics/t/reserve", "{}"));
  EXPECT_THAT(ReadUntil(client, "]}"), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\"attempt\":1")));
  EXPECT_EQ(store_.Topics()[0].delivered, 1U);
}

TEST_F(SessionTest, WhatIsRefusedByItsHeaderIsNotWaitedFor) {
  const std::string token = AdmitOneToken();
  const std::pair<const char*, const char*> refused[] = {
      {"POST /nowhere", "404"},
      {"POST /small", "405"},
      {"POST /v1/topics/t/jobs", "401"},
      {"GET /small", "413"},
      {"HEAD /small", "413"},
      {"GET /v1/topics/t/jobs", "401"},
      {"HEAD /v1/topics/t/jobs", "401"},
      {"POST /v1/topics/%ff/jobs", "400"},
  };
  for (const auto& [call, status] : refused) {
    auto client = Connect();
    Send(client, fmt::format("{} HTTP/1.1\r\nHost: x\r\nContent-Length: 4097\r\n\r\nx", call));
    EXPECT_THAT(ReadToEnd(client),
                AllOf(StartsWith(fmt::format("HTTP/1.1 {} ", status)), HasSubstr("\r\nConnection: close\r\n")))
        << call;
    EXPECT_EQ(Metric("tocsin_transfer_memory_bytes"), 0) << call;
  }
  auto wrong_method = Connect();
  Send(wrong_method, "POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n");
  EXPECT_THAT(ReadToEnd(wrong_method), HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  auto chunked = Connect();
  Send(chunked, "GET /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1001\r\n");
  EXPECT_THAT(ReadToEnd(chunked), StartsWith("HTTP/1.1 413 "));

  // What is here already is read: the connection goes on.
  auto client = Connect();
  Send(client, Post("/nowhere", "{}") + Post("/v1/topics/t/jobs", "{}") + kGetSmall);
  EXPECT_THAT(ReadUntil(client, "small"), AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr("HTTP/1.1 401 ")));
  Send(client, fmt::format("POST /v1/topics/t/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n"
                           "Content-Length: 2\r\n\r\n{{",
                           token));
  AdmitOneToken();  // another
  Send(client, "}");
  EXPECT_THAT(ReadUntil(client, "}}"), StartsWith("HTTP/1.1 401 "));
}

TEST_F(SessionTest, LargeAnswersArePackedForThoseWhoTakeThat) {
  auto client = Connect();
  const auto get = [&](size_t bytes, std::string_view fields) {
    large_bytes = bytes;
    Send(client, fmt::format("GET /large HTTP/1.1\r\nHost: x\r\n{}\r\n", fields));
    RunWhile([&] {
      client.Take();
      const size_t end = client.got.find("\r\n\r\n");
      const size_t length = client.got.find("Content-Length: ");
      return !client.closed &&
             (end == std::string::npos || client.got.size() < end + 4 + std::stoul(client.got.substr(length + 16)));
    });
    return std::move(client.got);
  };
  EXPECT_THAT(
      get(5'000, "Accept-Encoding: deflate, gzip\r\n"),
      AllOf(HasSubstr("\r\nContent-Encoding: gzip\r\nVary: Accept-Encoding\r\n"), HasSubstr("\r\n\r\n\x1f\x8b")));
  for (const char* fields : {"", "Accept-Encoding: gzip;q=0\r\n"}) {
    EXPECT_THAT(get(5'000, fields), AllOf(HasSubstr("\r\nVary: Accept-Encoding\r\n"), Not(HasSubstr("gzip")),
                                          HasSubstr("\r\nContent-Length: 5000\r\n")));
  }
  EXPECT_THAT(get(kGzipBytesMin - 1, "Accept-Encoding: gzip\r\n"),
              AllOf(Not(HasSubstr("gzip")), Not(HasSubstr("Vary"))));
  const std::string large = get(1'000'000, "Accept-Encoding: gzip\r\n");
  EXPECT_THAT(large, HasSubstr("\r\nContent-Encoding: gzip\r\n"));
  EXPECT_LT(large.size(), 500'000U);
}

TEST_F(SessionTest, HeadIsGetWithoutTheBody) {
  auto client = Connect();
  Send(client, "HEAD /small HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(ReadUntil(client, "\r\n\r\n"), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Content-Length: 5\r\n")));
  Send(client, "HEAD /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(ReadUntil(client, "\r\n\r\n"), AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: POST\r\n")));
  Send(client, kGetSmall);
  EXPECT_THAT(ReadUntil(client, "small"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(SessionTest, TargetsForProxiesAndForTheWholeServer) {
  auto client = Connect();
  Send(client, "GET http://x/small HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(ReadUntil(client, "small"), StartsWith("HTTP/1.1 200 "));
  Send(client, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(ReadUntil(client, "}}"), StartsWith("HTTP/1.1 404 "));
  Send(client, "CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(ReadUntil(client, "}}"), StartsWith("HTTP/1.1 404 "));
  Send(client, "GET http://y/small HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(ReadToEnd(client), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("\"field\":\"host\"")));
}

TEST_F(SessionTest, AClientThatClosedItsSendingSideGetsAllItsAnswers) {
  auto client = Connect();
  Send(client, kGetSmall + Post("/hold", "x") + kGetSmall);
  client.socket.shutdown(boost::asio::socket_base::shutdown_send);
  RunWhile([&] { return held.empty(); });
  held.front().Send({.body = "held"});
  const std::string answers = ReadToEnd(client);
  EXPECT_THAT(answers, AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("held"), EndsWith("\r\n\r\nsmall")));
}

TEST_F(SessionTest, AClientThatClosesItsSendingSideAfterItsReserveGetsTheNextAnswers) {
  auto client = Connect();
  Send(client, Post("/reserve", "") + Post("/hold", "") + kGetSmall);
  RunWhile([&] { return Metric("tocsin_http_parked") != 1; });
  loop_.Post([&] { service_.Submit(loop_, {"t", std::vector<NewJob>(1), nullptr}, [](const auto&) {}); });
  RunWhile([&] { return held.empty(); });
  client.socket.shutdown(boost::asio::socket_base::shutdown_send);
  Settle();  // the read that watched over the reserve sees it
  held.front().Send({.body = "held"});
  EXPECT_THAT(ReadToEnd(client), AllOf(HasSubstr("reserved"), HasSubstr("held"), EndsWith("\r\n\r\nsmall")));
}

TEST_F(SessionTest, AParkedReserveEndsWithItsClient) {
  auto client = Connect();
  Send(client, Post("/reserve", ""));
  RunWhile([&] { return Metric("tocsin_http_parked") != 1; });
  client.socket.shutdown(boost::asio::socket_base::shutdown_send);
  EXPECT_EQ(ReadToEnd(client), "");
  EXPECT_EQ(Metric("tocsin_http_parked"), 0);
  EXPECT_EQ(Metric("tocsin_http_connections"), 0);
}

TEST_F(SessionTest, JobsInAnAnswerThatCannotBeSentAreReleased) {
  const auto leased = [&] { return store_.Topics().front().leased; };
  auto other = Connect();
  Send(other, Post("/v1/topics/t/jobs", R"({"payload":")" + std::string(900'000, 'x') + "\"}"));
  EXPECT_THAT(ReadUntil(other, "}]}"), HasSubstr("accepted"));
  client_buffer_bytes = 4096;
  {
    auto leaving = Connect();
    Send(leaving, Post("/v1/topics/t/reserve", R"({"wait_ms":10000})"));
    RunWhile([&] { return leased() == 0; });
  }
  RunWhile([&] { return leased() > 0; });
  Send(other, Post("/v1/topics/t/reserve", ""));
  EXPECT_THAT(ReadUntil(other, "]}"), HasSubstr("\"attempt\":1,"));
  Settle();
  EXPECT_EQ(leased(), 1U);  // this one was sent
}

TEST_F(SessionTest, LittleIsReadBehindAParkedReserve) {
  auto client = Connect();
  Send(client, Post("/reserve", ""));
  RunWhile([&] { return Metric("tocsin_http_parked") != 1; });
  std::string behind;
  while (behind.size() < 32 << 10) behind += kGetSmall;
  Send(client, behind);
  EXPECT_GT(Unread(client), behind.size() / 3);
  Pass(10 * kSecond);
  EXPECT_EQ(Metric("tocsin_http_parked"), 1);

  loop_.Post([&] { service_.Submit(loop_, {"t", std::vector<NewJob>(1), nullptr}, [](const auto&) {}); });
  const std::string last = Post("/length", "the last");
  Send(client, last);
  EXPECT_THAT(ReadUntil(client, "length 8"), AllOf(HasSubstr("reserved"), HasSubstr("small")));

  Send(client, Post("/reserve", "") + behind);
  RunWhile([&] { return Metric("tocsin_http_parked") != 1; });
  client.socket.shutdown(boost::asio::socket_base::shutdown_send);
  Pass(kSecond);
  EXPECT_EQ(Metric("tocsin_http_parked"), 0);
  EXPECT_EQ(Metric("tocsin_http_connections"), 0);
}

TEST_F(SessionTest, AnExceptionEndsItsConnectionAndNoOther) {
  constexpr std::string_view kCounter = "tocsin_connection_exceptions_total{door=\"http\"}";
  EXPECT_EQ(Metric(kCounter), 0);
  auto other = Connect();
  auto at_once = Connect();
  Send(at_once, "GET /throw HTTP/1.1\r\nHost: x\r\n\r\n" + kGetSmall);
  EXPECT_EQ(ReadToEnd(at_once), "");
  EXPECT_EQ(Metric(kCounter), 1);

  auto late = Connect();
  Send(late, "GET /throw_later HTTP/1.1\r\nHost: x\r\n\r\n");
  RunWhile([&] { return later.empty(); });
  loop_.Post(std::move(later.front()));
  EXPECT_EQ(ReadToEnd(late), "");
  EXPECT_EQ(Metric(kCounter), 2);

  auto within = Connect();
  Send(within, "GET /throw_within HTTP/1.1\r\nHost: x\r\n\r\n" + kGetSmall);
  ReadToEnd(within);
  EXPECT_EQ(Metric(kCounter), 3);

  Send(other, Post("/v1/topics/t/jobs", R"({"payload":"p"})"));
  EXPECT_THAT(ReadUntil(other, "}"), StartsWith("HTTP/1.1 201 "));
  auto listing = Connect();
  Send(listing, "GET /throw_topic HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(ReadToEnd(listing), "");
  EXPECT_EQ(Metric(kCounter), 4);
  EXPECT_EQ(Metric("tocsin_http_connections"), 1);
  Send(other, kGetSmall);
  EXPECT_THAT(ReadUntil(other, "small"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(SessionTest, WhatAConnectionDoesIsATurnOfTheShard) {
  net::Turns turns(metrics_, 0);
  auto client = Connect();
  const net::Turns::Measuring measuring(turns);
  EXPECT_EQ(Metric("tocsin_shard_turn_seconds_max{shard=\"0\"}"), 0);
  Send(client, kGetSmall);
  EXPECT_THAT(ReadUntil(client, "small"), StartsWith("HTTP/1.1 200 "));
  EXPECT_GT(Metric("tocsin_shard_turn_seconds_max{shard=\"0\"}"), 0);
}

TEST_F(SessionTest, ChunkedBodiesMayHaveTrailersOfTheSizeOfAHeader) {
  const std::string post = "POST /length HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  auto client = Connect();
  Send(client, post + "4;e=1\r\nfour\r\n0\r\nDigest: x\r\nX: " + std::string(16'000, 'x') + "\r\n\r\n" + kGetSmall);
  EXPECT_THAT(ReadUntil(client, "small"), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("length 4")));
  // Byte by byte, and the next request in the last piece.
  const std::string slow = post + "4\r\nfour\r\n00\r\nA: b\r\n\r";
  for (const char c : slow) Send(client, std::string_view(&c, 1));
  Send(client, "\n" + kGetSmall);
  EXPECT_THAT(ReadUntil(client, "small"), HasSubstr("length 4"));

  const std::string large(70'000, 'x');
  for (const std::string& bad : {"0\r\n" + large + ": x\r\n\r\n", "0\r\nx: " + large + "\r\n\r\n", "0\r\n" + large,
                                 "4;" + large + "\r\nfour\r\n0\r\n\r\n"}) {
    auto attacker = Connect();
    Send(attacker, post + bad);
    EXPECT_THAT(ReadToEnd(attacker), AllOf(StartsWith("HTTP/1.1 413 "), HasSubstr("\"too_large\"")));
  }
  for (const char* bad : {"x\r\n", "4\r\nfourfive", "4\nfour", "0\r\nno colon\r\n\r\n"}) {
    auto attacker = Connect();
    Send(attacker, post + bad);
    EXPECT_THAT(ReadToEnd(attacker), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("\"invalid_argument\"")));
  }
  EXPECT_EQ(Metric("tocsin_connection_exceptions_total{door=\"http\"}"), 0);
  EXPECT_EQ(Metric("tocsin_transfer_memory_bytes"), 0);
}

TEST_F(SessionTest, AnEmptyLineMayComeInTwoPieces) {
  auto client = Connect();
  Send(client, "\r");
  Send(client, "\n" + kGetSmall);
  EXPECT_THAT(ReadUntil(client, "small"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(SessionTest, OnlyThoseWhoKnowItAreToldToContinue) {
  for (const auto& [version, first] : {std::pair("1.1", "HTTP/1.1 100 "), std::pair("1.0", "HTTP/1.1 200 ")}) {
    auto client = Connect();
    Send(client,
         fmt::format("POST /length HTTP/{}\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n", version));
    Send(client, "four");
    EXPECT_THAT(ReadUntil(client, "length 4"), StartsWith(first));
  }
}

TEST_F(SessionTest, EmptyLinesBetweenRequestsAreSkipped) {
  auto client = Connect();
  Send(client, Post("/length", "four") + "\r\n\r\n" + kGetSmall + "\r\n");
  EXPECT_THAT(ReadUntil(client, "small"), HasSubstr("length 4"));
  Pass(59 * kSecond);
  EXPECT_FALSE(IsClosed(client));
  Pass(kSecond);
  EXPECT_TRUE(IsClosed(client));  // idle, and not in the middle of a header
}

TEST_F(SessionTest, AThousandPipelinedRequestsAreAnsweredInTheirOrder) {
  auto client = Connect();
  std::string requests;
  std::string bodies;
  for (int i = 1'000; i < 2'000; ++i) {
    requests += fmt::format("GET /{}/number HTTP/1.1\r\nHost: x\r\n\r\n", i);
    bodies += std::to_string(i);
  }
  Send(client, requests);
  client.socket.shutdown(boost::asio::socket_base::shutdown_send);
  std::string answers = ReadToEnd(client);
  std::string got;
  for (size_t at = 0; (at = answers.find("\r\n\r\n", at)) != std::string::npos;) got += answers.substr(at += 4, 4);
  EXPECT_EQ(got, bodies);
}

}  // namespace
}  // namespace tocsin::http
