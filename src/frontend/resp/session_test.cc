// What a connection is answered, and in which order.
#include "frontend/resp/session.h"

#include <gmock/gmock.h>

#include "frontend/resp/session_test_site.h"

namespace tocsin::resp {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> Texts(const std::vector<Reply>& replies) {
  std::vector<std::string> texts;
  for (const Reply& reply : replies) texts.push_back(reply.items.empty() ? reply.text : reply[0].text);
  return texts;
}

std::string Submit(const std::string& topic, const std::string& id, std::vector<std::string> options = {}) {
  std::vector<std::string> args{"JOB.SUBMIT", topic, "payload of " + id, "ID", id};
  args.insert(args.end(), options.begin(), options.end());
  return CommandText(args);
}

class SessionTest : public TestSite {
 protected:
  void MakeTopic(const std::string& topic) {
    auto client = Connect();
    EXPECT_EQ(Ask(client, {"TOPIC.SET", topic}).type, '*');
  }
};

TEST_F(SessionTest, PipelinedCommandsAreAnsweredInTheirOrder) {
  auto client = Connect();
  const auto replies = Ask(client,
                           "PING\r\n" + Submit("t", "a") + CommandText({"PING", "one"}) + Submit("t", "b") +
                               CommandText({"JOB.CANCEL", "t", "a"}) + CommandText({"NONSENSE"}) + Submit("u", "c") +
                               CommandText({"JOB.GET", "t", "b"}) + "PING two\r\n",
                           9);
  EXPECT_THAT(Texts(replies),
              ElementsAre("PONG", "a", "one", "b", "cancelled", StartsWith("ERR unknown command"), "c", "id", "two"));
}

TEST_F(SessionTest, RepliesWaitForThoseBeforeThem) {
  MakeTopic("t");
  auto client = Connect();
  HoldSubmits();
  Send(client, Submit("t", "a") + CommandText({"JOB.CANCEL", "t", "a"}) + "PING\r\n");
  EXPECT_EQ(store_.amends, 1U);  // it was begun, and is done
  EXPECT_TRUE(IsSilent(client));
  AnswerSubmits();
  EXPECT_THAT(Texts(Read(client, 3)), ElementsAre("a", "cancelled", "PONG"));
}

TEST_F(SessionTest, ARunOfOneCommandAndTopicIsOneCallOfTheStore) {
  MakeTopic("t");
  MakeTopic("u");
  auto client = Connect();
  std::string commands;
  constexpr size_t kEach = 50;
  for (size_t i = 0; i < kEach; ++i) commands += Submit("t", fmt::format("t{}", i), {"TRIGGER", "count"});
  for (size_t i = 0; i < kEach; ++i) commands += Submit("u", fmt::format("u{}", i));
  for (size_t i = 0; i < kEach; ++i) commands += CommandText({"JOB.COUNT", "t", fmt::format("t{}", i), "event"});
  for (size_t i = 0; i < kEach; ++i) commands += CommandText({"JOB.CANCEL", "u", fmt::format("u{}", i)});
  commands += CommandText({"JOB.RESERVE", "t", "MAX", "100"});
  auto replies = Ask(client, commands, 4 * kEach + 1);
  EXPECT_EQ(store_.submits, 2U);
  EXPECT_EQ(store_.counts, 1U);
  EXPECT_EQ(store_.amends, 1U);
  for (size_t i = 0; i < kEach; ++i) {
    EXPECT_EQ(replies[i][0].text, fmt::format("t{}", i));
    EXPECT_EQ(replies[kEach + i][0].text, fmt::format("u{}", i));
    EXPECT_EQ(replies[2 * kEach + i][0].text, "fired");
    EXPECT_EQ(replies[3 * kEach + i].text, "cancelled");
  }
  ASSERT_EQ(replies.back().items.size(), kEach);
  commands.clear();
  for (const Reply& job : replies.back().items) commands += CommandText({"JOB.ACK", "t", job[1].text, job[1].text});
  replies = Ask(client, commands, kEach);
  EXPECT_EQ(store_.settles, 1U);
  for (const Reply& reply : replies) {
    EXPECT_EQ(reply[0].text, "ok");
    EXPECT_EQ(reply[1].text, "stale");  // the second time in one command
  }
}

TEST_F(SessionTest, MoreThanABatchIsSeveralCalls) {
  MakeTopic("t");
  auto client = Connect();
  const size_t batch = service_.limits().batch;
  std::vector<std::string> many(batch - 1, "x");
  many.insert(many.begin(), {"JOB.MSUBMIT", "t", "DELAY", "0"});
  // Three commands in one read, of which two fit into a call.
  const std::string one = CommandText({"JOB.MSUBMIT", "t", "DELAY", "0", "y"});
  const auto replies = Ask(client, CommandText(many) + one + one, 3);
  EXPECT_EQ(replies[0].items.size(), batch - 1);
  EXPECT_EQ(replies[2].items.size(), 1U);
  EXPECT_EQ(Figures("t").accepted, batch + 1);
  EXPECT_GE(store_.submits, 2U);
  many.insert(many.end(), 2, "x");
  EXPECT_THAT(Ask(client, many).text, StartsWith("INVALID 10001 payloads"));
}

TEST_F(SessionTest, AnInvalidCommandRefusesItselfAlone) {
  MakeTopic("t");
  auto client = Connect();
  const auto replies = Ask(client,
                           Submit("t", "a") + Submit("t", "b", {"DELAY", "soon"}) + Submit("t", "c") +
                               CommandText({"JOB.SUBMIT", "t"}) + CommandText({"JOB.SUBMIT", "t", "x", "KEEPP"}) +
                               Submit("t", "d") + Submit("t", std::string(257, 'i')) + Submit("t", "e"),
                           8);
  EXPECT_THAT(Texts(replies),
              ElementsAre("a", StartsWith("INVALID DELAY is 'soon'"), "c", HasSubstr("it is used as: JOB.SUBMIT topic"),
                          HasSubstr("KEEP"), "d", StartsWith("INVALID id"), "e"));
  EXPECT_EQ(Figures("t").accepted, 4U);
}

TEST_F(SessionTest, CommandsBehindTheOneThatCreatesTheirTopicFindIt) {
  auto client = Connect();
  const std::string token = TokenText({});
  const auto replies = Ask(client,
                           Submit("t", "a", {"DELAY", "60000"}) + Submit("t", "b", {"TRIGGER", "count"}) +
                               CommandText({"JOB.CANCEL", "t", "a"}) + CommandText({"JOB.COUNT", "t", "b", "event"}) +
                               CommandText({"JOB.ACK", "t", token}) + CommandText({"JOB.RESERVE", "t"}),
                           6);
  EXPECT_THAT(Texts(std::vector(replies.begin(), replies.end() - 1)),
              ElementsAre("a", "b", "cancelled", "fired", "stale"));
  EXPECT_EQ(replies.back()[0][0].text, "b");
  EXPECT_EQ(store_.submits, 1U);
}

TEST_F(SessionTest, ErrorsBehindTheCreationOfATopicWaitForIt) {
  auto client = Connect();
  const auto replies =
      Ask(client, Submit("t", "a") + "NONSENSE\r\n" + Submit("t", "b") + "JOB.GET t\r\n" + Submit("t", "c"), 5);
  EXPECT_THAT(Texts(replies),
              ElementsAre("a", StartsWith("ERR"), "b", HasSubstr("it is used as: JOB.GET topic id"), "c"));
}

TEST_F(SessionTest, ATopicWithAnImpossibleNameIsRefusedToEachCommand) {
  auto client = Connect();
  const std::string topic(300, 't');
  const auto replies = Ask(client, Submit(topic, "a") + Submit(topic, "b") + "PING\r\n", 3);
  EXPECT_THAT(Texts(replies), ElementsAre(StartsWith("INVALID"), StartsWith("INVALID"), "PONG"));
}

TEST_F(SessionTest, LinesAndArraysOfOneRunKeepTheirOwnBytes) {
  MakeTopic("t");
  auto client = Connect();
  HoldSubmits();
  // Longer than what a string holds in itself: their memory is given back where nobody keeps it.
  const std::string long_id(100, 'i');
  Send(client, Submit("t", "1" + long_id) + fmt::format("JOB.SUBMIT t payload ID 2{}\r\n", long_id) +
                   fmt::format("JOB.SUBMIT t payload ID 3{}\r\n", long_id) + Submit("t", "4" + long_id) +
                   fmt::format("JOB.SUBMIT t payload ID 5{}\r\n", long_id));
  Settle();
  AnswerSubmits();
  const auto replies = Read(client, 5);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(replies[i][0].text, fmt::format("{}{}", i + 1, long_id));
}

TEST_F(SessionTest, BytesOfOneReadAreKeptUntilTheStoreIsDoneWithThem) {
  MakeTopic("t");
  auto first = Connect();
  auto second = Connect();
  HoldSubmits();
  for (int i = 0; i < 10; ++i) {  // more than the chunks that are kept
    Send(first, Submit("t", fmt::format("first {}", i)));
    Send(second, Submit("t", fmt::format("other {}", i)));
  }
  AnswerSubmits();
  const auto replies = Read(first, 10);
  const auto others = Read(second, 10);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(replies[i][0].text, fmt::format("first {}", i));
    EXPECT_EQ(others[i][0].text, fmt::format("other {}", i));
  }
}

TEST_F(SessionTest, TheProtocolIsThatOfTheMomentOfTheCommand) {
  auto client = Connect();
  const std::string counted = CommandText({"JOB.SUBMIT", "t", "x", "TRIGGER", "count"});
  const auto replies = Ask(client,
                           counted + CommandText({"HELLO", "3"}) + counted + counted + CommandText({"RESET"}) +
                               counted + CommandText({"HELLO", "4"}) + CommandText({"HELLO"}),
                           8);
  EXPECT_EQ(replies[0][2].type, '$');
  EXPECT_EQ(replies[1].type, '%');
  EXPECT_EQ(replies[2][2].type, '_');
  EXPECT_EQ(replies[3][2].type, '_');
  EXPECT_EQ(replies[4].text, "RESET");
  EXPECT_EQ(replies[5][2].type, '$');
  EXPECT_THAT(replies[6].text, StartsWith("INVALID"));
  EXPECT_EQ(replies[7].type, '*');
}

TEST_F(SessionTest, AReserveThatWaitsHoldsWhatIsBehindItAndNobodyElse) {
  MakeTopic("t");
  auto waiting = Connect();
  auto other = Connect();
  Send(waiting, CommandText({"JOB.RESERVE", "t", "WAIT", "60000"}) + "PING\r\n" + Submit("t", "b"));
  EXPECT_TRUE(IsSilent(waiting));
  EXPECT_EQ(Metric("tocsin_resp_parked"), 1);
  EXPECT_EQ(Ask(other, {"PING"}).text, "PONG");
  EXPECT_EQ(store_.submits, 0U);
  EXPECT_EQ(Ask(other, Submit("t", "a"), 1)[0][0].text, "a");
  const auto replies = Read(waiting, 3);
  EXPECT_EQ(replies[0][0][0].text, "a");
  EXPECT_EQ(replies[1].text, "PONG");
  EXPECT_EQ(replies[2][0].text, "b");
  EXPECT_EQ(Metric("tocsin_resp_parked"), 0);
}

TEST_F(SessionTest, AReserveIsTakenBackWhenItsClientCloses) {
  MakeTopic("t");
  auto other = Connect();
  {
    auto waiting = Connect();
    Send(waiting, CommandText({"JOB.RESERVE", "t", "WAIT", "60000"}));
    EXPECT_EQ(Metric("tocsin_resp_parked"), 1);
  }
  RunWhile([&] { return Metric("tocsin_resp_connections") > 1; });
  EXPECT_EQ(Metric("tocsin_resp_parked"), 0);
  Ask(other, Submit("t", "a"), 1);
  EXPECT_EQ(Figures("t").leased, 0U);
  EXPECT_EQ(store_.settles, 0U);  // nothing was claimed for it, so nothing had to be released
  const Reply got = Ask(other, {"JOB.RESERVE", "t"});
  EXPECT_EQ(got[0][0].text, "a");
  EXPECT_EQ(got[0][3].text, "1");  // its first attempt
}

TEST_F(SessionTest, WhatIsClaimedForAClientThatHasJustGoneIsReleased) {
  MakeTopic("t");
  auto other = Connect();
  Ask(other, Submit("t", "a"), 1);
  std::vector<Task> claims;
  store_.held = &claims;
  {
    auto leaving = Connect();
    Send(leaving, CommandText({"JOB.RESERVE", "t", "WAIT", "60000"}));
    RunWhile([&] { return claims.empty(); });
  }
  RunWhile([&] { return Metric("tocsin_resp_connections") > 1; });
  store_.held = nullptr;
  EXPECT_EQ(Figures("t").leased, 1U);
  loop_.Post([&] { claims.front()(); });
  RunWhile([&] { return Figures("t").leased > 0; });
  const Reply got = Ask(other, {"JOB.RESERVE", "t"});
  EXPECT_EQ(got[0][3].text, "1");
}

TEST_F(SessionTest, JobsInAReplyThatCannotBeSentAreReleased) {
  auto other = Connect();
  Ask(other, Submit("t", "sent"), 1);
  Ask(other, CommandText({"JOB.SUBMIT", "t", std::string(900'000, 'x'), "ID", "unsent"}), 1);
  client_buffer_bytes = 4096;
  {
    auto leaving = Connect();
    Send(leaving, CommandText({"JOB.RESERVE", "t"}) + CommandText({"JOB.RESERVE", "t"}));
    RunWhile([&] { return Figures("t").leased < 2; });
    Settle();
  }
  RunWhile([&] { return Figures("t").leased > 1; });
  const Reply got = Ask(other, {"JOB.RESERVE", "t", "MAX", "2"});
  ASSERT_EQ(got.items.size(), 1U);
  EXPECT_EQ(got[0][0].text, "unsent");
  EXPECT_EQ(got[0][3].text, "1");  // nothing of its attempts is used up
  Settle();
  EXPECT_EQ(Figures("t").leased, 2U);
}

TEST_F(SessionTest, AClientThatGoesBehindMuchThatNobodyReadsIsNoticed) {
  MakeTopic("t");
  {
    auto waiting = Connect();
    Send(waiting, CommandText({"JOB.RESERVE", "t", "WAIT", "60000"}));
    Send(waiting, std::string(100 << 10, '\n'));  // as much as is read ahead
    Send(waiting, std::string(10 << 10, '\n'));
    EXPECT_GT(Unread(waiting), 0U);
  }
  Pass(Millis(1000));
  EXPECT_EQ(Metric("tocsin_resp_connections"), 0);
  EXPECT_EQ(Metric("tocsin_resp_parked"), 0);
}

TEST_F(SessionTest, AClientThatClosesItsSendingSideGetsItsReplies) {
  auto client = Connect();
  HoldSubmits();
  // The topic is new, so that what is behind the first command is not begun when the end is seen.
  Send(client, Submit("t", "a") + CommandText({"JOB.CANCEL", "t", "a"}) + "PING\r\n");
  client.socket.shutdown(boost::asio::socket_base::shutdown_send);
  Settle();
  EXPECT_TRUE(IsSilent(client));
  AnswerSubmits();
  EXPECT_THAT(ReadToEnd(client), AllOf(StartsWith("*3\r\n$1\r\na\r\n"), HasSubstr("+cancelled\r\n+PONG\r\n")));
}

TEST_F(SessionTest, AHalfCommandBeforeTheEndIsNone) {
  auto client = Connect();
  Send(client, "PING\r\n*2\r\n$4\r\nPING\r\n$2\r\nx");
  client.socket.shutdown(boost::asio::socket_base::shutdown_send);
  EXPECT_EQ(ReadToEnd(client), "+PONG\r\n");
}

TEST_F(SessionTest, QuitIsAnsweredBehindEverythingAndNothingBehindItIsDone) {
  MakeTopic("t");
  auto client = Connect();
  HoldSubmits();
  Send(client, Submit("t", "a") + "QUIT\r\n" + CommandText({"JOB.CANCEL", "t", "a"}));
  EXPECT_TRUE(IsSilent(client));
  AnswerSubmits();
  EXPECT_THAT(ReadToEnd(client), AllOf(StartsWith("*3\r\n$1\r\na\r\n"), testing::EndsWith("+OK\r\n")));
  EXPECT_EQ(store_.amends, 0U);
}

TEST_F(SessionTest, WhatIsNoCommandIsAnsweredAndTheConnectionClosed) {
  MakeTopic("t");
  auto client = Connect();
  Send(client, Submit("t", "a") + "*1\r\n+PING\r\n" + std::string(100'000, 'x'));
  EXPECT_THAT(ReadToEnd(client),
              AllOf(StartsWith("*3\r\n$1\r\na\r\n"), HasSubstr("\r\n-INVALID protocol: expected '$'")));
}

TEST_F(SessionTest, HttpIsDroppedWithoutAWord) {
  auto client = Connect();
  Send(client, "POST /v1/topics/t/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\nPING\r\n");
  EXPECT_EQ(ReadToEnd(client), "");
  EXPECT_EQ(Metric("tocsin_resp_dropped_total"), 1);
}

TEST_F(SessionTest, AnExceptionEndsItsConnectionAndNoOther) {
  constexpr std::string_view kCounter = "tocsin_connection_exceptions_total{door=\"resp\"}";
  EXPECT_EQ(Metric(kCounter), 0);
  auto other = Connect();
  auto client = Connect();
  Send(client, "PING\r\nNODES\r\nPING\r\n");
  // On a busy machine a turn may end after the first command, which is answered then.
  EXPECT_THAT(ReadToEnd(client), testing::AnyOf("", "+PONG\r\n"));
  EXPECT_EQ(Metric(kCounter), 1);
  EXPECT_EQ(Metric("tocsin_resp_connections"), 1);
  EXPECT_EQ(Ask(other, {"PING"}).text, "PONG");
}

TEST_F(SessionTest, WhatAConnectionDoesIsATurnOfTheShard) {
  net::Turns turns(metrics_, 0);
  auto client = Connect();
  const net::Turns::Measuring measuring(turns);
  EXPECT_EQ(Metric("tocsin_shard_turn_seconds_max{shard=\"0\"}"), 0);
  EXPECT_EQ(Ask(client, {"PING"}).text, "PONG");
  EXPECT_GT(Metric("tocsin_shard_turn_seconds_max{shard=\"0\"}"), 0);
}

/// Keeps the session of a connection, to answer its commands as the test wants.
class AnswerTest : public TestSite {
 protected:
  void Accept(net::Socket socket) override {
    session_ = std::make_shared<Session>(*server_, std::move(socket), nullptr, 1);
    session_->Start();
  }

  std::shared_ptr<Session> session_;
};

TEST_F(AnswerTest, AnAnswerThatThrowsEndsItsConnection) {
  auto client = Connect();
  auto then = session_->pipeline().Hold({*FindCommand("JOB.GET"), {}, *session_}).Then([](Answer& answer, int) {
    answer.writer().Simple("never sent");
    throw 1;
  });
  Task late = [then = std::move(then)]() mutable { then(Result<int>(1)); };
  Settle();
  EXPECT_TRUE(session_->open());
  loop_.Post(std::move(late));
  EXPECT_EQ(ReadToEnd(client), "");
  EXPECT_FALSE(session_->open());
  EXPECT_EQ(Metric("tocsin_connection_exceptions_total{door=\"resp\"}"), 1);
}

TEST_F(SessionTest, CommandsInPiecesAreTheSame) {
  const std::string commands = Submit("t", "a") + "PING\r\n" + CommandText({"JOB.CANCEL", "t", "a"}) + "PING 'x y'\n";
  auto whole = Connect();
  Send(whole, commands);
  const auto wanted = Texts(Read(whole, 4));
  auto piecemeal = Connect();
  for (const char byte : commands) Send(piecemeal, {&byte, 1});
  EXPECT_EQ(Texts(Read(piecemeal, 4)), wanted);
}

}  // namespace
}  // namespace tocsin::resp
