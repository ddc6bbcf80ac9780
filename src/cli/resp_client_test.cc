#include "cli/resp_client.h"

#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "base/clock.h"
#include "cli/scripted_server.h"

namespace tocsin::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr Millis kLimit{20'000};
constexpr std::string_view kHello = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
constexpr std::string_view kGreeting = "%2\r\n$6\r\nserver\r\n$6\r\ntocsin\r\n$5\r\nproto\r\n:3\r\n";
constexpr std::string_view kPing = "*1\r\n$4\r\nPING\r\n";

RespRequest Ping(size_t count = 1) {
  RespRequest request;
  for (size_t i = 0; i < count; ++i) request.Add(std::vector<std::string>{"PING"});
  return request;
}

void Greet(ScriptedServer& server) {
  EXPECT_EQ(server.ReadUntil(kHello), kHello);
  server.Write(kGreeting);
}

void AnswerOnce(ScriptedServer& server) {
  EXPECT_EQ(server.ReadUntil(kPing), kPing);
  server.Write("+PONG\r\n");
}

void GreetAndAnswer(ScriptedServer& server) {
  Greet(server);
  AnswerOnce(server);
}

TEST(RespRequest, IsArraysOfBulkStrings) {
  RespRequest request;
  request.Add(std::vector<std::string>{"JOB.SUBMIT", "t", std::string("a\r\n\0b", 5), ""});
  request.Add(std::vector<std::string>{"PING"});
  EXPECT_EQ(request.count, 2U);
  EXPECT_EQ(request.bytes,
            std::string("*4\r\n$10\r\nJOB.SUBMIT\r\n$1\r\nt\r\n$5\r\na\r\n\0b\r\n$0\r\n\r\n", 45) + std::string(kPing));
}

TEST(RespClient, ErrorsHaveTheCodesOfTheTable) {
  EXPECT_EQ(ErrorOfReply("NOTOPIC there is no topic x").code, Code::kTopicNotFound);
  EXPECT_EQ(ErrorOfReply("NOTOPIC there is no topic x").message, "topic_not_found: there is no topic x");
  EXPECT_EQ(ErrorOfReply("INVALID delay").code, Code::kInvalidArgument);
  EXPECT_EQ(ErrorOfReply("STRANGE new error").code, Code::kInternal);
  EXPECT_EQ(ErrorOfReply("STRANGE new error").message, "STRANGE: new error");
  EXPECT_EQ(ErrorOfReply("OVERLOADED").message, "overloaded: ");
  EXPECT_EQ(ErrorOfReply("IO a\x1b[2Jb").message.find('\x1b'), std::string::npos);
}

TEST(RespClient, GreetsOnceAndKeepsTheConnection) {
  ScriptedServer server({[](ScriptedServer& one) {
    GreetAndAnswer(one);
    AnswerOnce(one);
  }});
  RespClient client(server.endpoint("resp"), "");
  EXPECT_EQ(client.Call(Ping(), false, kLimit).value()[0].text, "PONG");
  EXPECT_EQ(client.Call(Ping(), false, kLimit).value()[0].text, "PONG");
}

TEST(RespClient, SendsItsTokenInTheGreeting) {
  constexpr std::string_view kWithToken =
      "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$6\r\nsecret\r\n";
  ScriptedServer server({[&](ScriptedServer& one) {
    EXPECT_EQ(one.ReadUntil(kWithToken), kWithToken);
    one.Write("-NOAUTH no such token\r\n");
  }});
  const auto replies = RespClient(server.endpoint("resp"), "secret").Call(Ping(), false, kLimit);
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code, Code::kUnauthenticated);
  EXPECT_EQ(replies.error().message, "unauthenticated: no such token");
}

TEST(RespClient, SaysWhereSomethingElseAnswers) {
  for (const std::string_view answer :
       {"%1\r\n+server\r\n+redis\r\n", "+OK\r\n", "%1\r\n+server\r\n+tocsin\r\n+more\r\n"}) {
    ScriptedServer server({[&](ScriptedServer& one) {
      one.ReadUntil(kHello);
      one.Write(answer);
      one.AwaitClose();
    }});
    const auto replies = RespClient(server.endpoint("resp"), "").Call(Ping(), true, kLimit);
    ASSERT_FALSE(replies) << answer;
    EXPECT_EQ(replies.error().code, Code::kInternal);
    EXPECT_THAT(replies.error().message, HasSubstr("is it a Tocsin server?"));
  }
}

TEST(RespClient, SaysWhereAnHttpPortAnswers) {
  ScriptedServer server({[&](ScriptedServer& one) {
    one.ReadUntil(kHello);
    one.Write("HTTP/1.1 400 Bad Request\r\n\r\n");
    one.AwaitClose();
  }});
  const auto replies = RespClient(server.endpoint("resp"), "").Call(Ping(), true, kLimit);
  ASSERT_FALSE(replies);
  EXPECT_THAT(replies.error().message, HasSubstr("answered in HTTP: try --server " + server.endpoint("http").url));
}

TEST(RespClient, ReadsAreSentAgainWhereAKeptConnectionBreaks) {
  ScriptedServer server({[](ScriptedServer& one) {
                           GreetAndAnswer(one);
                           one.ReadUntil(kPing);  // and closes without an answer
                         },
                         GreetAndAnswer});
  RespClient client(server.endpoint("resp"), "");
  EXPECT_TRUE(client.Call(Ping(), false, kLimit));
  EXPECT_TRUE(client.Call(Ping(), true, kLimit));
}

TEST(RespClient, WhatChangesSomethingIsNeverSentTwice) {
  ScriptedServer server({[](ScriptedServer& one) {
    GreetAndAnswer(one);
    one.ReadUntil(kPing);
  }});
  RespClient client(server.endpoint("resp"), "");
  EXPECT_TRUE(client.Call(Ping(), false, kLimit));
  const auto replies = client.Call(Ping(), false, kLimit);
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code, Code::kIo);
  EXPECT_THAT(replies.error().message, HasSubstr("broke off before it answered"));
}

TEST(RespClient, AConnectionClosedWhileIdleIsNoticedBeforeAnythingIsSent) {
  ScriptedServer server({GreetAndAnswer, GreetAndAnswer, GreetAndAnswer});
  RespClient other(server.endpoint("resp"), "");
  RespClient client(server.endpoint("resp"), "");
  ASSERT_TRUE(client.Call(Ping(), false, kLimit));
  ASSERT_TRUE(other.Call(Ping(), false, kLimit)) << "the server takes it only after it closed the first";
  EXPECT_TRUE(client.Call(Ping(), false, kLimit));
}

TEST(RespClient, AnAnswerThatNeverComesEndsAtTheLimit) {
  ScriptedServer server({[](ScriptedServer& one) {
    Greet(one);
    one.ReadUntil(kPing);
    one.Write("*2\r\n+half of it\r\n");
    one.AwaitClose();
  }});
  const auto replies = RespClient(server.endpoint("resp"), "").Call(Ping(), true, Millis(50));
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code, Code::kTimedOut);
  EXPECT_THAT(replies.error().message, HasSubstr("did not answer within 50ms; whether it did"));
}

TEST(RespClient, AGreetingThatNeverComesEndsAtTheLimit) {
  ScriptedServer server({[](ScriptedServer& one) { one.AwaitClose(); }});
  const auto replies = RespClient(server.endpoint("resp"), "").Call(Ping(), true, Millis(50));
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code, Code::kTimedOut);
  EXPECT_THAT(replies.error().message, testing::EndsWith("did not answer within 50ms"));
}

TEST(RespClient, AbortEndsTheCallUnderWayAndAllLaterOnes) {
  std::promise<void> asked;
  ScriptedServer server({[&](ScriptedServer& one) {
    Greet(one);
    one.ReadUntil(kPing);
    asked.set_value();
    one.AwaitClose();
  }});
  RespClient client(server.endpoint("resp"), "");
  std::thread other([&] {
    asked.get_future().wait();
    client.Abort();
  });
  const RealClock clock;
  const auto begin = clock.IoNow();
  EXPECT_EQ(client.Call(Ping(), false, kLimit).error().code, Code::kShuttingDown);
  EXPECT_LT(clock.IoNow() - begin, kLimit) << "it was the limit that ended it";
  EXPECT_EQ(client.Call(Ping(), false, kLimit).error().code, Code::kShuttingDown);
  other.join();
}

TEST(RespClient, SaysWhereNobodyListens) {
  Endpoint endpoint;
  {
    ScriptedServer server({});
    endpoint = server.endpoint("resp");
  }
  const auto replies = RespClient(endpoint, "").Call(Ping(), true, kLimit);
  ASSERT_FALSE(replies);
  EXPECT_THAT(replies.error().message, StartsWith("cannot reach " + endpoint.url + ": connection refused; is"));
}

TEST(RespClient, ReadsRepliesWhileItWrites) {
  // More than both sockets can hold, each way: a client that wrote all before it read would wait for ever.
  constexpr size_t kCount = 32;
  const std::string reply = "$1048576\r\n" + std::string(1 << 20, 'r') + "\r\n";
  ScriptedServer server({[&](ScriptedServer& one) {
    Greet(one);
    one.ReadUntil("ECHO");
    for (size_t i = 0; i < kCount; ++i) one.Write(reply);
    one.AwaitClose();
  }});
  RespRequest request;
  for (size_t i = 0; i < kCount; ++i) request.Add(std::vector<std::string>{"ECHO", std::string(1 << 20, 'w')});
  RespClient client(server.endpoint("resp"), "");
  const auto replies = client.Call(request, false, kLimit);
  ASSERT_TRUE(replies) << replies.error().message;
  EXPECT_EQ(replies->size(), kCount);
}

TEST(RespClient, AnErrorBeforeTheEndIsTheAnswerToAll) {
  ScriptedServer server({[](ScriptedServer& one) {
    Greet(one);
    one.ReadUntil(std::string(kPing) + std::string(kPing) + std::string(kPing));
    one.Write("+PONG\r\n-TOOLARGE the frame is too large\r\n");
  }});
  const auto replies = RespClient(server.endpoint("resp"), "").Call(Ping(3), false, kLimit);
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code, Code::kTooLarge);
}

TEST(RespClient, WhatNobodyAskedForIsNotTakenForAnAnswer) {
  ScriptedServer server({[](ScriptedServer& one) {
                           Greet(one);
                           one.ReadUntil(kPing);
                           one.Write("+PONG\r\n+PONG too much\r\n");
                           one.AwaitClose();
                         },
                         GreetAndAnswer});
  RespClient client(server.endpoint("resp"), "");
  EXPECT_EQ(client.Call(Ping(), false, kLimit).value()[0].text, "PONG");
  EXPECT_EQ(client.Call(Ping(), false, kLimit).value()[0].text, "PONG");
}

}  // namespace
}  // namespace tocsin::cli
