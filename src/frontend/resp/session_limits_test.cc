// What a connection may take, in memory and in time; who may do what; and the end.
#include <gmock/gmock.h>

#include "frontend/resp/session.h"
#include "frontend/resp/session_test_site.h"

namespace tocsin::resp {
namespace {

using testing::StartsWith;

constexpr Millis kSecond{1'000};
constexpr size_t kMebi = 1 << 20;

class SessionLimitsTest : public TestSite {
 protected:
  /// Puts a job in place that is `bytes` large.
  void PutJob(const std::string& id, size_t bytes) {
    auto client = Connect();
    const Reply reply = Ask(client, {"JOB.SUBMIT", "t", std::string(bytes, 'x'), "ID", id});
    ASSERT_EQ(reply.type, '*') << reply.text;
    store_.submits = 0;
  }
};

TEST_F(SessionLimitsTest, ForASlowReaderNoMoreIsBegunThanItMayKeepWaiting) {
  constexpr size_t kBytes = 100'000;
  constexpr size_t kCommands = 200;
  PutJob("a", kBytes);
  client_buffer_bytes = 4096;
  auto client = Connect();
  std::string commands;
  for (size_t i = 0; i < kCommands; ++i) commands += CommandText({"JOB.GET", "t", "a"});
  Send(client, commands);
  Settle();
  // 1 MiB, one answer more, and what the two ends of the socket hold.
  EXPECT_LE(store_.finds, kMebi / kBytes + 4);
  EXPECT_GE(store_.finds, kMebi / kBytes);
  EXPECT_LE(budget_.bytes(), kMebi + 2 * kBytes);
  EXPECT_EQ(Read(client, kCommands).size(), kCommands);
  EXPECT_EQ(store_.finds, kCommands);
  EXPECT_EQ(budget_.bytes(), 0U);
}

TEST_F(SessionLimitsTest, CommandsOfOneReadDoNotPileUpTheirReplies) {
  PutJob("a", 1);
  client_buffer_bytes = 4096;
  auto client = Connect();
  std::string commands;
  constexpr size_t kCommands = 2000;  // of which each has a reply of some KiB
  for (size_t i = 0; i < kCommands; ++i) commands += "COMMAND\n";
  Send(client, commands + "JOB.GET t a\n");
  Settle();
  EXPECT_EQ(store_.finds, 0U);
  EXPECT_EQ(Read(client, kCommands + 1).back().type, '*');
  EXPECT_EQ(store_.finds, 1U);
}

TEST_F(SessionLimitsTest, OtherClientsHaveTheirTurnBetweenPipelinedCommands) {
  constexpr size_t kCommands = 800;
  std::string infos;
  for (size_t i = 0; i < kCommands; ++i) infos += "INFO\n";
  std::string unknown;
  for (size_t i = 0; i < 10 * kCommands; ++i) unknown += "NONE\n";
  const std::string blank(10 * kCommands, '\n');
  for (const std::string& commands : {infos, unknown + infos, blank + infos}) {
    auto flood = Connect();
    auto other = Connect();
    const uint64_t before = server_->CommandsAnswered();
    // Both arrive before the server looks.
    ASSERT_EQ(flood.socket.send(boost::asio::buffer(commands)), commands.size());
    ASSERT_EQ(other.socket.send(boost::asio::buffer("PING\n", 5)), 5U);
    EXPECT_EQ(Read(other, 1)[0].text, "PONG");
    EXPECT_LT(server_->CommandsAnswered() - before, kCommands / 2);
    Settle();
  }
}

TEST_F(SessionLimitsTest, RepliesBehindASlowCommandCountToo) {
  constexpr size_t kBytes = 100'000;
  PutJob("a", kBytes);
  auto client = Connect();
  HoldSubmits();
  std::string commands = CommandText({"JOB.SUBMIT", "t", "x"});
  constexpr size_t kCommands = 40;
  for (size_t i = 0; i < kCommands; ++i) commands += CommandText({"JOB.GET", "t", "a"});
  Send(client, commands);
  Settle();
  EXPECT_LE(store_.finds, kMebi / kBytes + 1);
  AnswerSubmits();
  EXPECT_EQ(Read(client, kCommands + 1).size(), kCommands + 1);
}

TEST_F(SessionLimitsTest, OnlySoManyCallsAreUnderWayAtOnce) {
  PutJob("a", 1);
  auto client = Connect();
  HoldSubmits();
  std::string commands;
  constexpr size_t kPairs = 2000;
  for (size_t i = 0; i < kPairs; ++i) {
    commands += CommandText({"JOB.SUBMIT", "t", "x", "DELAY", "60000"}) + CommandText({"JOB.CANCEL", "t", "nothing"});
  }
  Send(client, commands);
  Settle();
  EXPECT_LE(store_.submits + store_.amends, 1100U);
  EXPECT_GE(store_.submits + store_.amends, 1000U);
  while (store_.submits < kPairs) {
    AnswerSubmits();
    HoldSubmits();
  }
  AnswerSubmits();
  EXPECT_EQ(Read(client, 2 * kPairs).back().text, "unknown");
}

TEST_F(SessionLimitsTest, ACommandThatDoesNotArriveEndsTheConnection) {
  auto idle = Connect();
  auto client = Connect();
  Send(client, "PING\r\n");
  EXPECT_EQ(Read(client, 1)[0].text, "PONG");
  Pass(3600 * kSecond);  // a client may be idle
  Send(client, "*2\r\n$4\r\nPING\r\n$5\r\nhe");
  Pass(59 * kSecond);
  Send(client, "l");  // another byte now and then is no reason to wait for longer
  EXPECT_TRUE(IsSilent(client));
  Pass(kSecond);
  EXPECT_TRUE(IsClosed(client));
  EXPECT_EQ(Ask(idle, {"PING"}).text, "PONG");
}

TEST_F(SessionLimitsTest, TheTimeIsThatOfOneCommand) {
  auto client = Connect();
  Send(client, "PI");
  for (int i = 0; i < 5; ++i) {
    Pass(50 * kSecond);
    EXPECT_EQ(Ask(client, "NG\nPI", 1)[0].text, "PONG");
  }
}

TEST_F(SessionLimitsTest, ALargeCommandMayTakeLongAsLongAsItMoves) {
  auto client = Connect();
  constexpr size_t kPiece = 100'000;
  Send(client, fmt::format("*3\r\n$10\r\nJOB.SUBMIT\r\n$1\r\nt\r\n${}\r\n", 5 * kPiece));
  for (int i = 0; i < 5; ++i) {
    Pass(50 * kSecond);
    Send(client, std::string(kPiece, 'x'));
  }
  EXPECT_EQ(Ask(client, "\r\n", 1)[0].type, '*');
  EXPECT_EQ(budget_.bytes(), 0U);
}

TEST_F(SessionLimitsTest, RepliesThatAreNotTakenEndTheConnection) {
  PutJob("a", 1'000'000);
  client_buffer_bytes = 4096;
  auto client = Connect();
  Send(client, "JOB.GET t a\n");
  Pass(59 * kSecond);
  EXPECT_EQ(Metric("tocsin_resp_connections"), 1);
  Pass(kSecond);
  EXPECT_EQ(Metric("tocsin_resp_connections"), 0);
  EXPECT_EQ(budget_.bytes(), 0U);
}

TEST_F(SessionLimitsTest, AReaderThatIsSlowButReadsGoesOn) {
  PutJob("a", 1'000'000);
  client_buffer_bytes = 4096;
  auto client = Connect();
  Send(client, "JOB.GET t a\n");
  for (int i = 0; i < 5; ++i) {
    Pass(50 * kSecond);
    const size_t before = client.got.size();
    RunWhile([&] {
      client.Take();
      return client.got.size() < before + 150'000;
    });
  }
  EXPECT_EQ(Read(client, 1)[0].type, '*');
}

TEST_F(SessionLimitsTest, AfterTheLastReplyAClientHasLittleTimeToClose) {
  for (const bool talks : {false, true}) {
    auto client = Connect();
    Send(client, "QUIT\r\n");
    RunWhile([&] {
      client.Take();
      return !client.closed;
    });
    EXPECT_EQ(client.got, "+OK\r\n");
    EXPECT_EQ(Metric("tocsin_resp_connections"), 1);
    if (talks) Send(client, "PING\r\n");
    Pass(3 * kSecond);
    EXPECT_EQ(Metric("tocsin_resp_connections"), 0) << talks;
  }
}

TEST_F(SessionLimitsTest, ACommandThatIsTooLargeForTheBudgetIsRefused) {
  auto client = Connect();
  std::string command = CommandText({"JOB.MSUBMIT", "t", "DELAY", "0", std::string(kMebi, 'x'), std::string(kMebi, 'x'),
                                     std::string(kMebi, 'x'), std::string(kMebi, 'x')});
  boost::system::error_code ignored;
  std::string_view left = command;
  RunWhile([&] {  // until the server says no: it does not read all of it
    left.remove_prefix(client.socket.write_some(boost::asio::buffer(left), ignored));
    client.Take();
    return client.got.empty() && !client.closed;
  });
  EXPECT_THAT(ReadToEnd(client), StartsWith("-OVERLOADED "));
  Pass(3 * kSecond);
  EXPECT_EQ(budget_.bytes(), 0U);
  auto small = Connect();
  EXPECT_EQ(Ask(small, {"PING"}).text, "PONG");
}

TEST_F(SessionLimitsTest, AReserveThatWaitsIsServedWhenThereIsRoom) {
  PutJob("a", 100'000);
  auto client = Connect();
  net::Charge others(budget_, net::Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(kBudget));
  Send(client, CommandText({"JOB.RESERVE", "t", "WAIT", "60000"}));
  Pass(kSecond);
  EXPECT_TRUE(IsSilent(client));
  EXPECT_EQ(Metric("tocsin_resp_parked"), 1);
  EXPECT_EQ(Figures("t").delivered, 0U);
  others.Clear();
  EXPECT_EQ(Read(client, 1)[0][0][0].text, "a");
  EXPECT_EQ(budget_.bytes(), 0U);
}

TEST_F(SessionLimitsTest, AnAnswerWithoutRoomIsRefusedAndNothingIsClaimed) {
  PutJob("a", 100'000);
  auto client = Connect();
  net::Charge others(budget_, net::Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(kBudget));
  const auto replies = Ask(client, "JOB.RESERVE t\nJOB.GET t a\nJOB.LIST t\nPING\n", 4);
  for (size_t i = 0; i < 3; ++i) EXPECT_THAT(replies[i].text, StartsWith("OVERLOADED "));
  EXPECT_EQ(replies[3].text, "PONG");
  EXPECT_EQ(store_.shown, 0U) << "nothing is read for which there is no room";
  EXPECT_EQ(Figures("t").delivered, 0U);
  others.Clear();
  const Reply got = Ask(client, {"JOB.RESERVE", "t"});
  EXPECT_EQ(got[0][0].text, "a");
  EXPECT_EQ(got[0][3].text, "1");  // nothing of its attempts is used up
}

TEST_F(SessionLimitsTest, SmallJobsAreShownHoweverFullTheBudgetIs) {
  PutJob("a", 1'000);
  auto client = Connect();
  net::Charge others(budget_, net::Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(kBudget));
  const auto replies = Ask(client, "JOB.GET t a\nJOB.LIST t\n", 2);
  EXPECT_EQ(replies[0].type, '*') << replies[0].text;
  EXPECT_EQ(replies[1][1].items.size(), 1U);
  EXPECT_EQ(budget_.bytes(), kBudget);
}

TEST_F(SessionLimitsTest, APageIsAsLargeAsThereIsRoom) {
  constexpr size_t kJobs = 20;
  for (size_t i = 0; i < kJobs; ++i) PutJob(std::to_string(i), 100'000);
  auto client = Connect();
  net::Charge others(budget_, net::Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(kBudget - kMebi));
  size_t listed = 0;
  std::vector<std::string> command{"JOB.LIST", "t"};
  for (size_t pages = 0; listed < kJobs; ++pages) {
    ASSERT_LT(pages, kJobs);
    const Reply page = Ask(client, command);
    ASSERT_EQ(page.type, '*') << page.text;
    ASSERT_GE(page[1].items.size(), 1U);
    EXPECT_LE(page[1].items.size() * 200'000, kMebi) << "the jobs and the reply";
    listed += page[1].items.size();
    command = {"JOB.LIST", "t", "CURSOR", page[0].text};
  }
  EXPECT_EQ(listed, kJobs);
  EXPECT_EQ(budget_.bytes(), others.bytes());
}

TEST_F(SessionLimitsTest, AListOfTopicsIsNotRefusedBecauseItIsLong) {
  auto client = Connect();
  // All may take more than one token gets, and less than the budget.
  constexpr size_t kTopics = kBudget / 10 * 9 / 3328;
  std::string commands;
  for (size_t i = 0; i < kTopics; ++i) commands += CommandText({"TOPIC.SET", fmt::format("t{}", i)});
  Ask(client, commands, kTopics);
  const std::string token = AdmitOneToken();
  EXPECT_EQ(Ask(client, {"AUTH", token}).text, "OK");
  const Reply list = Ask(client, {"TOPIC.LIST"});
  EXPECT_EQ(list.type, '*') << list.text;
  EXPECT_EQ(list.items.size(), kTopics);
  EXPECT_EQ(budget_.bytes(), 0U);
}

TEST_F(SessionLimitsTest, UnfinishedCommandsHoldNoMoreThanTheBudget) {
  const std::string head = "*3\r\n$10\r\nJOB.SUBMIT\r\n$1\r\nt\r\n$60000\r\n";
  std::string arguments = "*8000\r\n";
  for (int i = 0; i < 2'000; ++i) arguments += "$0\r\n\r\n";
  for (const std::string& start :
       {head + std::string(15'900, 'x'), head + std::string(59'999, 'x'), std::string(15'900, 'x'), arguments,
        CommandText({"JOB.SUBMIT", "t", "x", "DELAY", "60000"}) + head + std::string(20'000, 'x')}) {
    std::vector<Client> clients;
    while (clients.size() < 250 && !(clients.size() > 0 && clients.back().got.contains("-OVERLOADED "))) {
      Send(clients.emplace_back(Connect()), start);
      clients.back().Take();
      EXPECT_LE(budget_.bytes(), budget_.requests_bytes_max());
    }
    EXPECT_THAT(ReadToEnd(clients.back()), testing::HasSubstr("-OVERLOADED ")) << start.substr(0, 60);
    EXPECT_GT(budget_.bytes(), budget_.requests_bytes_max() / 2);
    auto small = Connect();
    std::string commands;
    for (int i = 0; i < 1'000; ++i) commands += CommandText({"JOB.SUBMIT", "t", "x", "DELAY", "60000"});
    for (const Reply& reply : Ask(small, commands, 1'000)) ASSERT_EQ(reply.type, '*') << reply.text;
    clients.clear();
    small.socket.close();
    RunWhile([&] { return budget_.bytes() > 0; });
  }
}

TEST_F(SessionLimitsTest, RepliesThatNobodyReadsHoldNoMoreThanTheBudget) {
  constexpr std::string_view kCut = R"(tocsin_connections_closed_total{door="resp",reason="memory"})";
  const std::string text(50'000, 'x');
  net::Charge others(budget_, net::Charge::For::kAnswer);  // few clients, because each has little time then
  ASSERT_TRUE(others.Reach(kBudget / 8 * 7));
  client_buffer_bytes = 4096;
  std::vector<Client> clients;
  while (clients.size() < 200 && Metric(kCut) == 0) {
    Send(clients.emplace_back(Connect()), CommandText({"ECHO", text}));
    EXPECT_LE(budget_.bytes(), kBudget);
  }
  EXPECT_EQ(Metric(kCut), 1);
  EXPECT_GT(budget_.bytes(), kBudget / 10 * 7) << "one address leaves a quarter to others";
  client_buffer_bytes = 0;
  auto reader = Connect();
  EXPECT_EQ(Ask(reader, {"ECHO", text}).text, text) << "it takes its reply at once";
  std::string commands;
  for (int i = 0; i < 1'000; ++i) commands += "PING\n" + CommandText({"JOB.SUBMIT", "t", "x", "DELAY", "60000"});
  for (const Reply& reply : Ask(reader, commands, 2'000)) ASSERT_NE(reply.type, '-') << reply.text;
}

TEST_F(SessionLimitsTest, JobsThatNobodyReadsHoldNoMoreThanTheBudget) {
  constexpr std::string_view kCut = R"(tocsin_connections_closed_total{door="resp",reason="memory"})";
  constexpr size_t kClients = 40;
  const std::string payload(31'000, 'x');  // so that the budget does not refuse a reserve, and checks later
  auto submitter = Connect();
  std::vector<std::string> submit{"JOB.MSUBMIT", "t", "DELAY", "0"};
  submit.resize(submit.size() + kClients, payload);
  ASSERT_EQ(Ask(submitter, submit).type, '*');
  net::Charge others(budget_, net::Charge::For::kAnswer);  // few clients, because each has little time then
  ASSERT_TRUE(others.Reach(kBudget / 8 * 7));
  client_buffer_bytes = 4096;
  std::vector<Client> clients;
  while (clients.size() < kClients && Metric(kCut) == 0) {
    Send(clients.emplace_back(Connect()), CommandText({"JOB.RESERVE", "t"}));
    EXPECT_LE(budget_.bytes(), kBudget + net::Budget::kSmallBytes) << "little is never refused";
  }
  EXPECT_EQ(Metric(kCut), 1);
  EXPECT_GT(budget_.bytes(), kBudget / 10 * 9);
  Settle();
  EXPECT_EQ(Figures("t").leased, clients.size() - 1) << "what was cut off is released";
}

TEST_F(SessionLimitsTest, ASlowReaderHasToHurryWhileOthersNeedTheMemory) {
  PutJob("a", 900'000);
  client_buffer_bytes = 4096;
  auto client = Connect();
  Send(client, CommandText({"JOB.GET", "t", "a"}));
  Pass(30 * kSecond);
  EXPECT_GT(budget_.bytes(), 100'000U);
  net::Charge others(budget_, net::Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(kBudget / 2));
  Pass(kSecond);
  EXPECT_EQ(budget_.bytes(), kBudget / 2);
  EXPECT_EQ(Metric("tocsin_resp_connections"), 0);
}

TEST_F(SessionLimitsTest, LargeCommandsArriveInSmallPieces) {
  auto client = Connect();
  std::string payloads[3];
  for (size_t i = 0; i < 3; ++i) {
    for (size_t at = 0; payloads[i].size() < 500'000; ++at) payloads[i] += fmt::format("{}.{} ", i, at);
  }
  const std::string command =
      CommandText({"JOB.MSUBMIT", "t", "DELAY", "0", payloads[0], payloads[1], payloads[2]}) + "PING\r\n";
  for (size_t at = 0; at < command.size(); at += 10'001) Send(client, std::string_view(command).substr(at, 10'001));
  EXPECT_EQ(Read(client, 2)[0].items.size(), 3U);
  for (const std::string& payload : payloads) {
    EXPECT_EQ(Ask(client, {"JOB.RESERVE", "t"})[0][2].text, payload);
  }
  EXPECT_EQ(budget_.bytes(), 0U);
}

TEST_F(SessionLimitsTest, ALargeCommandOfManyArgumentsIsReadInLargePieces) {
  auto client = Connect();
  std::vector<std::string> args{"JOB.MSUBMIT", "t", "DELAY", "0"};
  args.resize(args.size() + 10'000, std::string(150, 'x'));
  const std::string command = CommandText(args);
  std::string_view left = command;
  size_t turns = 0;
  RunWhile([&] {
    boost::system::error_code error;
    left.remove_prefix(client.socket.write_some(boost::asio::buffer(left), error));
    turns += loop_.io().poll();
    return TakeReplies(client).empty();
  });
  EXPECT_LT(turns, 2000U);
}

TEST_F(SessionLimitsTest, AnIdleConnectionKeepsNothing) {
  auto client = Connect();
  Send(client, "*3\r\n$10\r\nJOB.SUBMIT\r\n$1\r\nt\r\n$500000\r\n" + std::string(400'000, 'x'));
  EXPECT_GE(budget_.bytes(), 400'000U);
  Send(client, std::string(100'000, 'x') + "\r\n");
  EXPECT_EQ(Read(client, 1)[0].type, '*');
  EXPECT_EQ(budget_.bytes(), 0U);
}

TEST_F(SessionLimitsTest, AnUnauthenticatedClientCanOnlyLogIn) {
  const std::string token = AdmitOneToken();
  auto client = Connect();
  const auto replies = Ask(client,
                           "PING\r\nJOB.SUBMIT t x\r\nCOMMAND\r\nHELLO 3\r\nAUTH nonsense\r\nAUTH " + token +
                               "\r\nJOB.SUBMIT t x\r\nRESET\r\nPING\r\nHELLO 3 AUTH any " + token + "\r\nPING\r\n",
                           11);
  for (const size_t i : {0, 1, 2, 3, 4, 8}) EXPECT_THAT(replies[i].text, StartsWith("NOAUTH ")) << i;
  EXPECT_EQ(replies[5].text, "OK");
  EXPECT_EQ(replies[6].type, '*');
  EXPECT_EQ(replies[7].text, "RESET");
  EXPECT_EQ(replies[9].type, '%');
  EXPECT_EQ(replies[10].text, "PONG");
}

TEST_F(SessionLimitsTest, UnauthenticatedCommandsAreSmall) {
  const std::string token = AdmitOneToken();
  for (const std::string& command :
       {std::string("*2\r\n$4\r\nAUTH\r\n$20000\r\n"), std::string("*65\r\n"), std::string(20'000, 'x')}) {
    auto client = Connect();
    Send(client, command);
    EXPECT_THAT(ReadToEnd(client), StartsWith("-TOOLARGE protocol: a "));
  }
  auto client = Connect();
  EXPECT_EQ(Ask(client, {"AUTH", token}).text, "OK");
  EXPECT_EQ(Ask(client, {"JOB.SUBMIT", "t", std::string(50'000, 'x')}).type, '*');
}

TEST_F(SessionLimitsTest, ATokenReachesItsTopicsAlone) {
  const std::string token = AdmitOneToken("mine.");
  auto client = Connect();
  ASSERT_EQ(Ask(client, {"AUTH", token}).text, "OK");
  const auto replies =
      Ask(client, "JOB.SUBMIT mine.t x\nJOB.SUBMIT other x\nJOB.SUBMIT mine.t x\nTOPIC.LIST\nINFO totals\n", 5);
  EXPECT_EQ(replies[0].type, '*');
  EXPECT_THAT(replies[1].text, StartsWith("NOPERM "));
  EXPECT_EQ(replies[2].type, '*');
  EXPECT_EQ(replies[3].items.size(), 1U);
  EXPECT_EQ(replies[4].text, "");
}

TEST_F(SessionLimitsTest, AnUnauthenticatedClientHasLittleTimeToLogIn) {
  const std::string token = AdmitOneToken();
  auto silent = Connect();
  auto talking = Connect();
  auto half = Connect();
  auto known = Connect();
  ASSERT_EQ(Ask(known, {"AUTH", token}).text, "OK");
  for (int i = 0; i < 29; ++i) {
    Pass(kSecond);
    EXPECT_THAT(Ask(talking, {"PING"}).text, StartsWith("NOAUTH"));
    // Whole commands and always the beginning of another one.
    Ask(half, (i == 0 ? "" : std::string(1'900, 'x') + "\n") + std::string("PING\nPI"), i == 0 ? 1 : 2);
  }
  Pass(kSecond);
  EXPECT_TRUE(IsClosed(silent));
  EXPECT_TRUE(IsClosed(talking));
  EXPECT_TRUE(IsClosed(half));
  EXPECT_EQ(Ask(known, {"PING"}).text, "PONG");
}

TEST_F(SessionLimitsTest, AClientWhoseTokenIsRevokedIsUnauthenticated) {
  const std::string token = AdmitOneToken();
  auto waiting = Connect();
  auto idle = Connect();
  ASSERT_EQ(Ask(waiting, {"AUTH", token}).text, "OK");
  ASSERT_EQ(Ask(idle, {"AUTH", token}).text, "OK");
  Send(waiting, "JOB.RESERVE t WAIT 60000\nPING\n");
  EXPECT_EQ(Metric("tocsin_resp_parked"), 1);
  AdmitOneToken();
  const auto replies = Read(waiting, 2);
  EXPECT_EQ(replies[0].type, '*');
  EXPECT_TRUE(replies[0].items.empty());
  EXPECT_THAT(replies[1].text, StartsWith("NOAUTH"));
  EXPECT_EQ(Metric("tocsin_resp_parked"), 0);
  EXPECT_THAT(Ask(idle, {"PING"}).text, StartsWith("NOAUTH"));
  Pass(30 * kSecond);  // and has as little time as one
  EXPECT_TRUE(IsClosed(idle));
}

TEST_F(SessionLimitsTest, DrainingAnswersWhatIsUnderWay) {
  PutJob("a", 1);
  auto idle = Connect();
  auto busy = Connect();
  auto waiting = Connect();
  ASSERT_EQ(Ask(idle, {"PING"}).text, "PONG");
  HoldSubmits();
  Send(busy, CommandText({"JOB.SUBMIT", "t", "x", "ID", "b"}));
  Send(waiting, CommandText({"JOB.RESERVE", "u", "WAIT", "60000"}));
  bool drained = false;
  bool stopped = false;
  stopping_ = true;
  loop_.Post([&] {
    service_.Stop(loop_, [&] { stopped = true; });
    server_->Drain([&] { drained = true; });
  });
  Settle();
  EXPECT_TRUE(IsClosed(idle));
  EXPECT_EQ(ReadToEnd(waiting), "*0\r\n");
  EXPECT_FALSE(drained);
  EXPECT_TRUE(IsSilent(busy));
  AnswerSubmits();
  EXPECT_THAT(ReadToEnd(busy), StartsWith("*3\r\n$1\r\nb\r\n+accepted"));
  RunWhile([&] { return !drained || !stopped; });
}

// Other nodes may share the store, and go on with it.
TEST_F(SessionLimitsTest, JobsInRepliesThatNobodyReadsAreReleasedAtAStop) {
  auto other = Connect();
  Ask(other, CommandText({"JOB.SUBMIT", "t", std::string(900'000, 'x'), "ATTEMPTS", "1"}), 1);
  client_buffer_bytes = 4096;
  auto slow = Connect();
  Send(slow, CommandText({"JOB.RESERVE", "t"}));
  RunWhile([&] { return Figures("t").leased == 0; });
  Settle();
  std::vector<Task> settles;
  store_.held_settles = &settles;
  bool drained = false;
  bool stopped = false;
  bool quiet = false;
  stopping_ = true;
  loop_.Post([&] {
    service_.Stop(loop_, [&] { stopped = true; });
    server_->Drain([&] { drained = true; });
  });
  RunWhile([&] { return !stopped; });
  EXPECT_FALSE(drained);
  Pass(3 * kSecond);
  RunWhile([&] { return !drained; });
  loop_.Post([&] { service_.AwaitReleases(loop_, [&] { quiet = true; }); });
  Settle();
  EXPECT_FALSE(quiet) << "the store has not answered";
  ASSERT_EQ(settles.size(), 1U);
  loop_.Post([&] { settles.front()(); });
  RunWhile([&] { return !quiet; });
  EXPECT_EQ(Figures("t").leased, 0U);
  EXPECT_EQ(Figures("t").dead, 0U);
}

TEST_F(SessionLimitsTest, AFailedStoreIsTold) {
  PutJob("a", 1);
  auto client = Connect();
  store_.fail = Code::kStorageFailed;
  const auto replies = Ask(client, "JOB.SUBMIT t x\nJOB.CANCEL t a\nPING\nJOB.RESERVE t\n", 4);
  for (const size_t i : {0, 1, 3}) EXPECT_THAT(replies[i].text, StartsWith("STORAGEFAILED ")) << i;
  EXPECT_EQ(replies[2].text, "PONG");
  store_.fail.reset();
}

}  // namespace
}  // namespace tocsin::resp
