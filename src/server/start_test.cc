// What a node prepares before it serves: the limit of open files, the banner, the store.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/log.h"
#include "server/backing.h"
#include "server/program.h"
#include "server/server_test_site.h"

namespace tocsin {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Runs in a child process, because a lowered limit cannot be raised again. Exits with 0 if the plan is as
/// expected, and the limit is raised to the hard one.
[[noreturn]] void PlanIn(rlim_t soft, rlim_t hard, size_t wanted, const SocketPlan& expected) {
  SetLogLevel(LogLevel::kOff);
  const rlimit limit{soft, hard};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) std::_Exit(2);
  const SocketPlan plan = PlanSockets(wanted, 100);
  rlimit raised{};
  getrlimit(RLIMIT_NOFILE, &raised);
  const bool as_expected = plan.connections == expected.connections && plan.webhooks == expected.webhooks;
  std::_Exit(as_expected && raised.rlim_cur == hard ? 0 : 1);
}

TEST(FileLimit, SocketsFitBelowTheHardLimitAndLeaveRoomForOtherFiles) {
  const testing::ExitedWithCode fits(0);
  EXPECT_EXIT(PlanIn(100, 600, 300, {300, 200}), fits, "") << "webhooks get the rest";
  EXPECT_EXIT(PlanIn(500, 500, 500, {300, 100}), fits, "") << "and a quarter at least";
  EXPECT_EXIT(PlanIn(8'100, 8'100, 1'000'000, {8'000 - 1024, 1024}), fits, "") << "if that is not very many";
  EXPECT_EXIT(PlanIn(120, 120, 10'000, {23, 7}), fits, "") << "a quarter of all files stays for sockets";
  EXPECT_EXIT(PlanIn(4, 4, 10'000, {1, 1}), fits, "") << "never none";
}

TEST_F(ServerTest, EachServerThatANodeTalksToHasFilesInReserve) {
  const auto files = [this](std::vector<std::string> more) {
    more.emplace_back("--shards=2");
    return OwnFiles(ConfigWith(std::move(more)));
  };
  const size_t alone = files({});
  EXPECT_LE(alone, 192) << "at a limit of 256 there is room for clients";
  EXPECT_GT(files({"--kafka-brokers=127.0.0.1:1"}), alone);
  EXPECT_GT(files({"--rabbitmq-url=amqp://127.0.0.1:1"}), alone);
  EXPECT_GT(files({"--outbox-url=mysql://127.0.0.1:1/shop"}), alone);
  EXPECT_GT(files({"--store=redis", "--redis-endpoints=127.0.0.1:1"}), alone);
}

TEST(Banner, ShowsWhereToConnectAndAFirstJob) {
  const std::string text =
      BannerText({.version = "tocsind 1.2.3\n", .store = "data ./d", .url = "http://h:80", .resp = "h:6390"});
  EXPECT_TRUE(text.starts_with("tocsind 1.2.3\ndata ./d\n")) << text;
  EXPECT_THAT(text, HasSubstr("redis-cli -p 6390"));
  EXPECT_THAT(text, HasSubstr("http://h:80/v1/topics/demo/jobs"));
  EXPECT_THAT(text, Not(HasSubstr("TOCSIN_TOKEN")));
  EXPECT_THAT(text, Not(HasSubstr("dashboard")));
  EXPECT_THAT(BannerText({.url = "http://h:80", .dashboard = true}),
              HasSubstr("http     http://h:80   (in a browser: the dashboard)\n"));
  EXPECT_THAT(text, Not(HasSubstr("/v1/clock/advance")));
}

TEST(Banner, EveryCallThatItShowsHasTheAccessTokenIfOneIsNeeded) {
  const std::string text = BannerText({.url = "http://h:80", .resp = "h:1", .virtual_clock = true, .tokens = true});
  size_t calls = 0;
  for (size_t at = text.find("curl"); at != std::string::npos; at = text.find("curl", at + 1), ++calls) {
    EXPECT_THAT(text.substr(at, 60), HasSubstr("Bearer $TOCSIN_TOKEN"));
  }
  EXPECT_EQ(calls, 5) << "the clock, and four for a first job";
  EXPECT_THAT(text, HasSubstr("REDISCLI_AUTH=$TOCSIN_TOKEN redis-cli"));
}

class BackingTest : public ServerTest {
 protected:
  std::unique_ptr<Backing> Make(const std::vector<std::string>& arguments) {
    config_ = ConfigWith(arguments);
    return MakeBacking({config_, clock_, nullptr, metrics_, main_loop_, {&loop_}, {.id = "me-1"}, push_memory_});
  }

  Config config_;
  RealClock clock_;
  metrics::Registry metrics_;
  PushMemory push_memory_{{}};
  net::AsioLoop main_loop_{clock_};
  net::AsioLoop loop_{clock_};
};

TEST_F(BackingTest, AJournalIsOpenedInItsFolderAndKnowsItself) {
  const auto backing = Make({"--shards=1"});
  ASSERT_TRUE(backing->Open([] { return true; }));
  EXPECT_THAT(backing->Describe(), HasSubstr(folder_.At("data") + " (a new folder)"));
  std::optional<ClusterReport> report;
  backing->cluster()->Describe(loop_, [&](Result<ClusterReport> described) { report = *std::move(described); });
  while (!report) loop_.io().run_one();
  EXPECT_EQ(report->store, "journal");
  EXPECT_EQ(report->node, "me-1");
  EXPECT_TRUE(backing->Close());
}

TEST_F(BackingTest, AFolderThatOthersMayChangeIsAWarning) {
  const auto log_of = [this](mode_t mode) {
    EXPECT_EQ(::chmod(folder_.At("data").c_str(), mode), 0);
    SetLogLevel(LogLevel::kWarn);
    testing::internal::CaptureStderr();
    const auto backing = Make({"--shards=1"});
    EXPECT_TRUE(backing->Open([] { return true; }));
    EXPECT_TRUE(backing->Close());
    return testing::internal::GetCapturedStderr();
  };
  ASSERT_EQ(::mkdir(folder_.At("data").c_str(), 0700), 0);
  EXPECT_EQ(log_of(0700), "");
  EXPECT_EQ(log_of(0755), "") << "its files have mode 0600";
  EXPECT_THAT(log_of(0777), AllOf(HasSubstr(folder_.At("data")), HasSubstr("0777"), HasSubstr("chmod 700")));
}

TEST_F(BackingTest, WaitingForRedisEndsIfTheServerIsToldToStop) {
  const auto backing = Make({"--store=redis", "--redis-endpoints=127.0.0.1:1", "--shards=1"});
  int asked = 0;
  const Status opened = backing->Open([&] { return ++asked < 2; });
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kShuttingDown);
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace tocsin
