// The client and a server whose every byte the test decides: what real servers do too rarely to wait for.
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "clients/redis/link.h"

namespace tocsin::redis {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

const std::string kRole = "*1\r\n$4\r\nROLE\r\n";
const std::string kMaster = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";

/// Accepts one connection after the other, and keeps what arrives on the last one.
class ScriptedServer {
 public:
  explicit ScriptedServer(asio::io_context& io) : acceptor_(io, {asio::ip::address_v4::loopback(), 0}) { Accept(); }

  uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void Say(std::string_view text) { asio::write(*socket_, asio::buffer(text)); }
  void HangUp() { socket_->close(); }

  std::string got;
  int connections = 0;
  bool closed = false;  // by the client
  bool deaf = false;    // reads no more than what it waits for already

 private:
  void Accept() {
    acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
      if (error) return;
      socket_ = std::make_shared<tcp::socket>(std::move(socket));
      got.clear();
      closed = false;
      ++connections;
      Read(socket_);
      Accept();
    });
  }
  void Read(const std::shared_ptr<tcp::socket>& socket) {
    socket->async_read_some(asio::buffer(buffer_), [this, socket](const error_code& error, size_t count) {
      if (socket != socket_) return;
      if (error) {
        closed = true;
        return;
      }
      got.append(buffer_.data(), count);
      if (!deaf) Read(socket);
    });
  }

  tcp::acceptor acceptor_;
  std::shared_ptr<tcp::socket> socket_;
  std::array<char, 4096> buffer_{};
};

class ScriptedTest : public testing::Test {
 protected:
  void Connect(Millis command_timeout) {
    Options options;
    options.endpoints = {{"127.0.0.1", server_.port()}};
    options.command_timeout = command_timeout;
    client_ = Client::Make(io_, options, metrics_).value();
  }
  void Call(const std::string& argument) {
    client_->Call(Command("GET", argument), [this](const Result<Reply>& reply) {
      answers_.push_back(reply ? std::string(reply->root().text()) : reply.error().message);
    });
  }
  /// Runs the loop until it holds; the test fails where it never does.
  template <class F>
  void Until(F condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      io_.run_one_for(std::chrono::milliseconds(50));
    }
  }
  void Pass(Millis time) {
    const auto end = std::chrono::steady_clock::now() + time;
    Until([&] { return std::chrono::steady_clock::now() >= end; });
  }

  asio::io_context io_;
  metrics::Registry metrics_;
  ScriptedServer server_{io_};
  std::vector<std::string> answers_;
  std::unique_ptr<Client> client_;  // after them: its end answers what is under way
};

TEST_F(ScriptedTest, ACommandThatWasSentLateIsAnsweredInTimeAndDoesNotEndTheConnection) {
  Connect(Millis(600));
  Call("a");
  Until([&] { return server_.got == kRole; });
  Pass(Millis(400));
  server_.Say(kMaster);
  Until([&] { return server_.got.contains("\r\na\r\n"); });
  Until([&] { return answers_.size() == 1; });
  EXPECT_NE(answers_[0].find("unknown"), std::string::npos) << answers_[0];
  // What comes now is the answer that nobody waits for any more, and then the next one.
  Call("b");
  Until([&] { return server_.got.contains("\r\nb\r\n"); });
  server_.Say("+first\r\n+second\r\n");
  Until([&] { return answers_.size() == 2; });
  EXPECT_EQ(answers_[1], "second");
  EXPECT_EQ(server_.connections, 1);
}

TEST_F(ScriptedTest, AServerThatOwesAnAnswerForTooLongIsLeft) {
  Connect(Millis(200));
  Until([&] { return server_.got == kRole; });
  server_.Say(kMaster);
  Call("a");
  Until([&] { return answers_.size() == 1; });
  Until([&] { return server_.connections == 2 && server_.got == kRole; });
  server_.Say(kMaster);
  Call("b");
  Until([&] { return server_.got.contains("\r\nb\r\n"); });
  EXPECT_FALSE(server_.got.contains("\r\na\r\n"));  // what was sent once is not sent again
  server_.Say("+b\r\n");
  Until([&] { return answers_.size() == 2; });
  EXPECT_EQ(answers_[1], "b");
}

TEST_F(ScriptedTest, WhatWasSentIsNotSentAgainAfterALostConnectionAndWhatWasNotIs) {
  Connect(Millis(5'000));
  Until([&] { return server_.got == kRole; });
  server_.Say(kMaster);
  Call("a");
  Until([&] { return server_.got.contains("\r\na\r\n"); });
  server_.HangUp();
  Until([&] { return answers_.size() == 1; });
  EXPECT_NE(answers_[0].find("unknown"), std::string::npos) << answers_[0];
  Call("b");
  Until([&] { return server_.connections == 2 && server_.got == kRole; });
  server_.Say(kMaster);
  Until([&] { return server_.got.contains("\r\nb\r\n"); });
  EXPECT_FALSE(server_.got.contains("\r\na\r\n"));
  server_.Say("+b\r\n");
  Until([&] { return answers_.size() == 2; });
  EXPECT_EQ(answers_[1], "b");
}

// The server reads nothing while the client has more to say than fits on the way.
TEST_F(ScriptedTest, WhatDidNotLeaveWaitsForTheNextConnection) {
  Connect(Millis(5'000));
  Until([&] { return server_.got == kRole; });
  server_.Say(kMaster);
  Until([&] { return client_->Health()[0].connected; });
  server_.deaf = true;
  Call(std::string(20 << 20, 'x'));
  Pass(Millis(20));  // its bytes are on their way, as far as they fit
  Call("b");
  Pass(Millis(20));
  server_.deaf = false;
  server_.HangUp();
  Until([&] { return answers_.size() == 1; });
  EXPECT_NE(answers_[0].find("unknown"), std::string::npos) << answers_[0];
  Until([&] { return server_.connections == 2 && server_.got == kRole; });
  server_.Say(kMaster);
  Until([&] { return server_.got.ends_with("\r\nb\r\n"); });
  EXPECT_FALSE(server_.got.contains("xxx"));
  server_.Say("+b\r\n");
  Until([&] { return answers_.size() == 2; });
  EXPECT_EQ(answers_[1], "b");
}

TEST_F(ScriptedTest, AServerThatConnectsButSaysNothingIsLeft) {
  Options options;
  options.endpoints = {{"127.0.0.1", server_.port()}};
  options.connect_timeout = Millis(100);
  client_ = Client::Make(io_, options, metrics_).value();
  Until([&] { return server_.connections >= 3; });
  EXPECT_NE(client_->Health()[0].state.find("no connection within 100 ms"), std::string::npos);
}

TEST_F(ScriptedTest, WhatIsNoRedisIsLeftAndNamed) {
  Connect(Millis(300));
  Call("a");
  Until([&] { return server_.got == kRole; });
  server_.Say("HTTP/1.1 400 Bad Request\r\n\r\n");
  Until([&] { return answers_.size() == 1; });
  EXPECT_TRUE(answers_[0].starts_with("not sent: ")) << answers_[0];
  EXPECT_NE(answers_[0].find("does not speak Redis"), std::string::npos) << answers_[0];
}

TEST_F(ScriptedTest, WordsThatNobodyAskedForEndTheConnection) {
  Connect(Millis(5'000));
  Until([&] { return server_.got == kRole; });
  server_.Say(kMaster);
  server_.Say("-ERR you are idle\r\n");
  Until([&] { return server_.connections == 2; });
  EXPECT_NE(client_->Health()[0].state.find("ERR you are idle"), std::string::npos) << client_->Health()[0].state;
}

TEST_F(ScriptedTest, HalfAnAnswerIsNoAnswer) {
  Connect(Millis(5'000));
  Call("a");
  Call("b");
  Until([&] { return server_.got == kRole; });
  server_.Say(kMaster);
  Until([&] { return server_.got.contains("\r\nb\r\n"); });
  server_.Say("+a\r\n$5\r\nhal");
  Until([&] { return answers_.size() == 1; });
  EXPECT_EQ(answers_[0], "a");
  server_.Say("fx\r\n");
  Until([&] { return answers_.size() == 2; });
  EXPECT_EQ(answers_[1], "halfx");
}

TEST_F(ScriptedTest, ASubscriptionThatHearsNothingIsMadeAgain) {
  Connect(Millis(200));
  Until([&] { return server_.got == kRole; });
  server_.Say(kMaster);
  Until([&] { return client_->Health()[0].connected; });
  client_->Subscribe("news", [](std::string_view, std::string_view) {});
  Until([&] { return server_.connections == 2 && server_.got == kRole; });
  server_.Say(kMaster);
  Until([&] { return server_.got.contains("PING"); });
  server_.Say("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n");
  Until([&] { return server_.connections == 3; });
}

// A Redis that cannot save says MISCONF to PING as well, also to a connection with channels.
TEST_F(ScriptedTest, AnErrorToAPingIsAnAnswerAndOneToASubscribeIsARefusal) {
  Connect(Millis(2'000));
  Until([&] { return server_.got == kRole; });
  server_.Say(kMaster);
  Until([&] { return client_->Health()[0].connected; });
  std::string heard;
  client_->Subscribe("news", [&](std::string_view, std::string_view message) { heard += message; });
  Until([&] { return server_.connections == 2 && server_.got == kRole; });
  server_.Say(kMaster);
  for (int beat = 1; beat <= 2; ++beat) {
    Until([&] { return server_.got.ends_with("PING\r\n"); });
    server_.got.clear();
    if (beat == 1) server_.Say("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    server_.Say("-MISCONF Redis is configured to save RDB snapshots\r\n");
    server_.Say("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n");
    Until([&] { return heard.size() == static_cast<size_t>(beat) || server_.connections > 2; });
    ASSERT_EQ(server_.connections, 2) << "the subscription goes on";
  }
  client_->Subscribe("more", [](std::string_view, std::string_view) {});
  Until([&] { return server_.got.contains("more"); });
  server_.Say("-NOPERM no such channel for you\r\n");
  Until([&] { return server_.connections == 3; });
}

// A slot that moves while its channel is removed: SUNSUBSCRIBE is answered with MOVED, not with an end.
TEST_F(ScriptedTest, AChannelThatWasRemovedAndAddedAgainIsToldThatItHasMoved) {
  Options options;
  options.endpoints = {{"127.0.0.1", server_.port()}};
  Context context(io_, options, nullptr, metrics_);
  std::vector<std::string> moved;
  int backs = 0;
  Subscription link(context, Login{},
                    {.where = [&](Link& one) { one.ConnectTo(options.endpoints[0]); },
                     .back = [&] { ++backs; },
                     .moved = [&](std::string_view said) { moved.emplace_back(said); }});
  link.Add("news", [](std::string_view, std::string_view) {});
  Until([&] { return server_.got == kRole; });
  server_.Say(kMaster);
  Until([&] { return server_.got.ends_with("PING\r\n"); });
  const std::string joined = "*3\r\n$10\r\nssubscribe\r\n$4\r\nnews\r\n:1\r\n";
  const std::string ended = "*3\r\n$12\r\nsunsubscribe\r\n$4\r\nnews\r\n:0\r\n";
  server_.Say(joined + "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
  Until([&] { return backs == 1; });
  link.Remove("news");
  link.Add("news", [](std::string_view, std::string_view) {});
  server_.Say(fmt::format("-MOVED {} 127.0.0.1:1\r\n", HashSlot("news")) + joined);
  Until([&] { return backs == 2; });
  EXPECT_EQ(moved, std::vector<std::string>{}) << "it is subscribed again";
  server_.Say(ended);
  Until([&] { return !moved.empty(); });
  EXPECT_EQ(moved, std::vector<std::string>{"news"});
  Requests none;
  link.Close(none, none);
}

/// Answers by itself: it is a master, a sentinel that names the master of a port, and a node of a Cluster.
class ObligingServer {
 public:
  explicit ObligingServer(asio::io_context& io) : acceptor_(io, {asio::ip::address_v4::loopback(), 0}) { Accept(); }

  uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void Announce(std::string_view text) {
    for (const auto& session : subscribers_) {
      asio::write(session->socket,
                  asio::buffer(
                      fmt::format("*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n${}\r\n{}\r\n", text.size(), text)));
    }
  }
  size_t subscribers() const { return subscribers_.size(); }

  uint16_t master = 0;  // that it names
  int asked = 0;        // for the master
  int served = 0;       // commands
  std::string role = kMaster;
  uint16_t owner = 0;   // of all hash slots, as it says
  std::string refusal;  // of commands
  bool hangs = false;   // does not answer commands
  bool takes_subscriptions = true;
  int connections = 0;

 private:
  struct Session {
    tcp::socket socket;
    std::array<char, 4096> buffer{};
  };

  void Accept() {
    acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
      if (error) return;
      ++connections;
      Serve(std::make_shared<Session>(std::move(socket)));
      Accept();
    });
  }
  void Serve(const std::shared_ptr<Session>& session) {
    session->socket.async_read_some(asio::buffer(session->buffer), [=, this](const error_code& error, size_t count) {
      if (error) return;
      // Questions come one at a time: each waits for the answer to the one before.
      const std::string_view question(session->buffer.data(), count);
      if (question.contains("SUBSCRIBE")) subscribers_.push_back(session);
      error_code ignored;
      asio::write(session->socket, asio::buffer(AnswerTo(question)), ignored);
      Serve(session);
    });
  }
  std::string AnswerTo(std::string_view question) {
    if (question.contains("ROLE")) return role;
    if (question.contains("CLUSTER")) {
      return fmt::format("*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:{}\r\n$2\r\nid\r\n", owner);
    }
    if (question.contains("SUBSCRIBE") && !takes_subscriptions) return "-NOPERM no channels for you\r\n";
    if (question.contains("SUBSCRIBE")) return "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n";
    if (question.contains("GET")) {
      ++served;
      if (hangs) return "";
      if (!refusal.empty()) return refusal;
    }
    if (!question.contains("get-master-addr-by-name")) return "+OK\r\n";
    ++asked;
    const std::string text = std::to_string(master);
    return fmt::format("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{}\r\n", text.size(), text);
  }

  tcp::acceptor acceptor_;
  std::vector<std::shared_ptr<Session>> subscribers_;
};

class StaleSentinelTest : public ScriptedTest {
 protected:
  void Ask() {
    right_.master = right_.port();
    Options options;
    options.mode = Mode::kSentinel;
    options.master = "m";
    options.endpoints = {{"127.0.0.1", stale_.port()}, {"127.0.0.1", right_.port()}};
    client_ = Client::Make(io_, options, metrics_).value();
    Call("a");
    Until([&] { return answers_.size() == 1; });
    EXPECT_EQ(answers_[0], "OK");
    EXPECT_GE(stale_.asked, 1);
    EXPECT_EQ(right_.served, 1);
  }

  ObligingServer stale_{io_};
  ObligingServer right_{io_};
};

// Peer bug 3: a sentinel that was cut off names the old master for ever.
TEST_F(StaleSentinelTest, ThatNamesADeadMasterIsNotBelievedForEver) {
  stale_.master = 1;
  Ask();
}

TEST_F(StaleSentinelTest, ThatNamesAReplicaIsNotBelievedForEver) {
  ObligingServer replica(io_);
  replica.role = "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:1\r\n$7\r\nconnect\r\n:0\r\n";
  stale_.master = replica.port();
  Ask();
  EXPECT_EQ(replica.served, 0);
}

// Nothing is lost and nothing fails: the word of a sentinel alone moves commands and messages.
TEST_F(ScriptedTest, AnAnnouncedMasterIsFollowed) {
  ObligingServer sentinel(io_);
  ObligingServer first(io_);
  ObligingServer second(io_);
  sentinel.master = first.port();
  Options options;
  options.mode = Mode::kSentinel;
  options.master = "m";
  options.endpoints = {{"127.0.0.1", sentinel.port()}};
  client_ = Client::Make(io_, options, metrics_).value();
  int ups = 0;
  client_->OnUp([&] { ++ups; });
  client_->Subscribe("news", [](std::string_view, std::string_view) {});
  Until([&] { return first.subscribers() == 1 && sentinel.subscribers() == 1 && client_->Health()[0].connected; });
  Call("a");
  Until([&] { return answers_.size() == 1; });
  EXPECT_EQ(first.served, 1);

  ups = 0;
  const int asked = sentinel.asked;
  sentinel.master = second.port();
  sentinel.Announce("other 127.0.0.1 1 127.0.0.1 2");
  sentinel.Announce("m 127.0.0.1 1 127.0.0.1 2");
  Until([&] { return second.subscribers() == 1 && client_->Health()[0].connected && ups > 0; });
  EXPECT_LE(sentinel.asked - asked, 3);  // for the announcement, for the commands, for the messages
  Call("b");
  Until([&] { return answers_.size() == 2; });
  EXPECT_EQ(answers_[1], "OK");
  EXPECT_EQ(second.served, 1);
}

class DoubtfulNodeTest : public ScriptedTest {
 protected:
  // The old master says for ever that it serves all slots: only the other node knows better.
  void Connect(Millis command_timeout) {
    old_.owner = old_.port();
    new_.owner = old_.port();
    Options options;
    options.mode = Mode::kCluster;
    options.command_timeout = command_timeout;
    options.endpoints = {{"127.0.0.1", old_.port()}, {"127.0.0.1", new_.port()}};
    client_ = Client::Make(io_, options, metrics_).value();
    Call("a");
    Until([&] { return answers_.size() == 1; });
    EXPECT_EQ(answers_[0], "OK");
    EXPECT_EQ(old_.served, 1);
    EXPECT_EQ(new_.served, 0);
  }

  ObligingServer old_{io_};
  ObligingServer new_{io_};
};

// Without a word of MOVED and with its connection well: the map is not looked at by itself for long.
TEST_F(DoubtfulNodeTest, ThatCannotServeIsNotTheLastWord) {
  for (const std::string_view refusal : {"-CLUSTERDOWN The cluster is down\r\n", "-LOADING Redis is loading\r\n"}) {
    SCOPED_TRACE(refusal);
    answers_.clear();
    old_.served = new_.served = 0;
    old_.refusal.clear();
    Connect(Millis(5'000));
    old_.refusal = refusal;
    new_.owner = new_.port();
    Call("b");
    Until([&] { return answers_.size() == 2; });
    EXPECT_EQ(answers_[1], "OK");
    EXPECT_EQ(new_.served, 1);
  }
}

TEST_F(DoubtfulNodeTest, ThatHangsIsLeftLongBeforeTheTimeOutOfACommand) {
  Connect(Millis(60'000));
  old_.hangs = true;
  new_.owner = new_.port();
  Call("b");  // its outcome stays unknown until the time-out
  const auto begun = std::chrono::steady_clock::now();
  while (answers_.size() == 1) {
    Call("c");
    Pass(Millis(100));
    ASSERT_FALSE(HasFatalFailure());
    if (std::chrono::steady_clock::now() - begun > std::chrono::seconds(10)) break;
  }
  ASSERT_GT(answers_.size(), 1);
  EXPECT_EQ(answers_[1], "OK");
}

TEST_F(ScriptedTest, ARefusedSubscriptionIsTriedLessAndLessOften) {
  ObligingServer server(io_);
  server.takes_subscriptions = false;
  Options options;
  options.endpoints = {{"127.0.0.1", server.port()}};
  options.backoff_min = Millis(10);
  client_ = Client::Make(io_, options, metrics_).value();
  client_->Subscribe("news", [](std::string_view, std::string_view) {});
  Until([&] { return server.connections >= 4; });
  Pass(Millis(1'000));
  EXPECT_LE(server.connections, 14);  // without the doubling about 70
}

TEST_F(ScriptedTest, APasswordThatTheServerRepeatsIsNotShown) {
  Options options;
  options.endpoints = {{"127.0.0.1", server_.port()}};
  options.password = "hunter2";
  client_ = Client::Make(io_, options, metrics_).value();
  Until([&] { return server_.got.contains("ROLE"); });
  server_.Say("-ERR unknown command 'AUTH', with args beginning with: 'hunter2'\r\n");
  Until([&] { return client_->Health()[0].state.contains("AUTH is refused"); });
  EXPECT_FALSE(client_->Health()[0].state.contains("hunter2")) << client_->Health()[0].state;
}

}  // namespace
}  // namespace tocsin::redis
