// What is ZooKeeper's own: nodes, their owners and who may touch them. Coordinators and a session of a stranger run
// here, on the loop of the test; the contract suite has them in processes of their own.
#include "coordination/zookeeper/coordinator.h"

#include <deque>

#include <gtest/gtest.h>

#include "net/asio_loop.h"
#include "real/zookeeper_server.h"

namespace tocsin {
namespace {

using zookeeper::Answer;
using zookeeper::Event;
using zookeeper::Outcome;
using zookeeper::Session;

constexpr Millis kSoon{10'000};

class ZookeeperNodes : public testing::Test {
 protected:
  struct Node {
    std::unique_ptr<ZookeeperCoordinator> coordinator;
    std::deque<Members> views;
  };

  void SetUp() override {
    if (const std::string why = real::WhyNoZooKeeper(); !why.empty()) GTEST_SKIP() << why;
    auto server = real::ZooKeeperServer::Make();
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  /// Runs the loop until it holds; false after kSoon.
  bool RunUntil(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kSoon;
    while (!condition()) {
      loop_.io().restart();
      if (loop_.io().run_one_until(deadline) == 0 && std::chrono::steady_clock::now() >= deadline) return false;
    }
    return true;
  }

  ZookeeperOptions Options() const {
    return {.hosts = server_->Hosts(), .path = "/a/deep/path", .session = Millis(2'000)};
  }

  std::unique_ptr<Node> Join(const std::string& id, ZookeeperOptions options) {
    auto node = std::make_unique<Node>();
    node->coordinator = ZookeeperCoordinator::Make(loop_, loop_.io(), clock_, std::move(options)).value();
    node->coordinator->Join({.id = id}, [&views = node->views](const Members& members) { views.push_back(members); });
    return node;
  }

  /// The next view.
  Members Next(Node& node) {
    if (!RunUntil([&] { return !node.views.empty(); })) {
      ADD_FAILURE() << "no view; " << node.coordinator->Health().state;
      return {};
    }
    Members view = std::move(node.views.front());
    node.views.pop_front();
    return view;
  }

  static std::string Text(const Members& view) {
    std::string text = view.joined ? "joined:" : "out:";
    for (const Member& member : view.members) text += " " + member.id;
    return text;
  }

  std::shared_ptr<Session> Stranger(const std::string& credentials = {}) {
    bool connected = false;
    auto session = Session::Open(
        loop_, worker_, {.hosts = server_->Hosts(), .timeout = Millis(2'000), .credentials = credentials},
        [&connected](Event event, const std::string&) { connected = connected || event == Event::kConnected; });
    EXPECT_TRUE(RunUntil([&] { return connected; }));
    return session;
  }

  Answer Await(const std::function<void(Session::OnAnswer)>& call) {
    std::optional<Answer> got;
    call([&got](Answer answer) { got = std::move(answer); });
    EXPECT_TRUE(RunUntil([&] { return got.has_value(); }));
    return got.value_or(Answer{});
  }

  Status Leave(Node& node) {
    std::optional<Status> left;
    node.coordinator->Leave([&left](Status status) { left = std::move(status); });
    EXPECT_TRUE(RunUntil([&] { return left.has_value(); }));
    return left.value_or(Status(Fail(Code::kInternal, "no answer")));
  }

  std::unique_ptr<real::ZooKeeperServer> server_;
  RealClock clock_;
  net::AsioLoop loop_{clock_};
  zookeeper::Worker worker_;
};

constexpr const char* kNodeA = "/a/deep/path/members/a";

TEST_F(ZookeeperNodes, ParentsAreMadeAndLeaveTakesTheNodeAway) {
  const auto a = Join("a", Options());
  EXPECT_EQ(Text(Next(*a)), "joined: a");
  EXPECT_TRUE(a->coordinator->Health().connected);
  const auto stranger = Stranger();
  EXPECT_EQ(Await([&](auto answer) { stranger->Get(kNodeA, std::move(answer)); }).outcome, Outcome::kOk);
  EXPECT_TRUE(Leave(*a));
  EXPECT_EQ(Await([&](auto answer) { stranger->Get(kNodeA, std::move(answer)); }).outcome, Outcome::kNoNode);
}

TEST_F(ZookeeperNodes, TheRootIsAPathToo) {
  ZookeeperOptions options = Options();
  options.path = "/";
  const auto a = Join("a", options);
  EXPECT_EQ(Text(Next(*a)), "joined: a");
}

TEST_F(ZookeeperNodes, ANodeThatSomebodyRemovedSaysSoAndJoinsAnew) {
  const auto a = Join("a", Options());
  EXPECT_EQ(Text(Next(*a)), "joined: a");
  const auto stranger = Stranger();
  EXPECT_EQ(Await([&](auto answer) { stranger->Delete(kNodeA, std::move(answer)); }).outcome, Outcome::kOk);
  EXPECT_EQ(Text(Next(*a)), "out:");
  EXPECT_EQ(Text(Next(*a)), "joined: a");
}

TEST_F(ZookeeperNodes, WithTheParentsToo) {
  const auto a = Join("a", Options());
  EXPECT_EQ(Text(Next(*a)), "joined: a");
  const auto stranger = Stranger();
  Await([&](auto answer) { stranger->Delete(kNodeA, std::move(answer)); });
  Await([&](auto answer) { stranger->Delete("/a/deep/path/members", std::move(answer)); });
  EXPECT_EQ(Text(Next(*a)), "out:");
  EXPECT_EQ(Text(Next(*a)), "joined: a");
}

// The node of a session that this process had before, and that has not expired yet, would vanish with it.
TEST_F(ZookeeperNodes, AnOldNodeOfTheSameNameIsReplaced) {
  {
    const auto b = Join("b", Options());  // makes the parents
    EXPECT_EQ(Text(Next(*b)), "joined: b");
    EXPECT_TRUE(Leave(*b));
  }
  auto before = Stranger();
  EXPECT_EQ(Await([&](auto answer) { before->Create(kNodeA, "", true, std::move(answer)); }).outcome, Outcome::kOk);
  const auto a = Join("a", Options());
  EXPECT_EQ(Text(Next(*a)), "joined: a");
  bool closed = false;
  before->Close([&closed] { closed = true; });
  EXPECT_TRUE(RunUntil([&] { return closed; }));
  const auto stranger = Stranger();
  EXPECT_EQ(Await([&](auto answer) { stranger->Get(kNodeA, std::move(answer)); }).outcome, Outcome::kOk);
}

TEST_F(ZookeeperNodes, WhatStrangersPutThereIsNoMember) {
  const auto a = Join("a", Options());
  EXPECT_EQ(Text(Next(*a)), "joined: a");
  const auto stranger = Stranger();
  Await([&](auto answer) { stranger->Create("/a/deep/path/members/%zz", "", true, std::move(answer)); });
  Await([&](auto answer) { stranger->Create("/a/deep/path/members/b", "\xFF=", true, std::move(answer)); });
  EXPECT_EQ(Text(Next(*a)), "joined: a b");
}

TEST_F(ZookeeperNodes, CredentialsKeepOthersOut) {
  ZookeeperOptions options = Options();
  options.username = "tocsin";
  options.password = "secret:with:colons";
  const auto a = Join("a", options);
  EXPECT_EQ(Text(Next(*a)), "joined: a");
  const auto b = Join("b", options);
  EXPECT_EQ(Text(Next(*b)), "joined: a b");
  const auto stranger = Stranger();
  EXPECT_EQ(Await([&](auto answer) { stranger->Get(kNodeA, std::move(answer)); }).outcome, Outcome::kFailed);
  EXPECT_EQ(Await([&](auto answer) { stranger->Delete(kNodeA, std::move(answer)); }).outcome, Outcome::kFailed);
  const auto friendly = Stranger("tocsin:secret:with:colons");
  EXPECT_EQ(Await([&](auto answer) { friendly->Get(kNodeA, std::move(answer)); }).outcome, Outcome::kOk);
  // A node with the wrong password says why it does not join, and goes on trying.
  options.password = "wrong";
  const auto c = Join("c", options);
  EXPECT_TRUE(RunUntil([&] { return c->coordinator->Health().state.contains("refuses"); }));
  EXPECT_TRUE(c->views.empty());
}

TEST_F(ZookeeperNodes, AHostThatIsNotKnownYetIsTriedAgain) {
  ZookeeperOptions options = Options();
  options.hosts = "no-such-host.invalid:2181";
  const auto a = Join("a", options);
  EXPECT_TRUE(RunUntil([&] { return a->coordinator->Health().state.contains("no-such-host.invalid"); }));
  EXPECT_FALSE(a->coordinator->Health().connected);
  EXPECT_TRUE(Leave(*a));
}

TEST_F(ZookeeperNodes, MayGoAtAnyMoment) {
  for (int turns = 0; turns < 40; ++turns) {
    const auto a = Join("a", Options());
    for (int i = 0; i < turns; ++i) loop_.io().run_one_for(Millis(1));
    if (turns % 2 == 0) EXPECT_TRUE(Leave(*a));
  }
}

TEST(ZookeeperOptions, AreChecked) {
  RealClock clock;
  net::AsioLoop loop(clock);
  const auto field = [&](ZookeeperOptions options) {
    const auto made = ZookeeperCoordinator::Make(loop, loop.io(), clock, std::move(options));
    return made ? "" : made.error().field;
  };
  EXPECT_EQ(field({}), "hosts");
  EXPECT_EQ(field({.hosts = "h:1/chroot"}), "hosts");
  EXPECT_EQ(field({.hosts = "h:1"}), "");
  for (const char* path : {"", "tocsin", "/a/", "/a//b", "/a/../b", "/a\n"}) {
    EXPECT_EQ(field({.hosts = "h:1", .path = path}), "path") << path;
  }
  EXPECT_EQ(field({.hosts = "h:1", .session = Millis(399)}), "session");
  EXPECT_EQ(field({.hosts = "h:1", .session = Millis(60'001)}), "session");
  EXPECT_EQ(field({.hosts = "h:1", .password = "p"}), "username");
  EXPECT_EQ(field({.hosts = "h:1", .username = "u"}), "password");
  EXPECT_EQ(field({.hosts = "h:1", .username = "u:v", .password = "p"}), "username");
}

}  // namespace
}  // namespace tocsin
