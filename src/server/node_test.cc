#include "server/node.h"

#include <future>

#include <gmock/gmock.h>

#include "auth/token_file.h"
#include "server/program.h"
#include "server/server_test_site.h"

namespace tocsin {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Node = ServerTest;

TEST_F(Node, ServesAndEndsWithoutAnErrorOnASignal) {
  RunningNode node(ConfigWith({}));
  EXPECT_THAT(node.Ask("/healthz"), HasSubstr(" 200 "));
  EXPECT_THAT(node.Ask("/metrics"), HasSubstr("tocsin_cluster_members 1\n"));
  EXPECT_EQ(node.Stop(), kExitOk);
}

TEST_F(Node, ANodeOnTheSameFolderHasTheJobs) {
  {
    const RunningNode node(ConfigWith({}));
    EXPECT_THAT(node.banner(), HasSubstr("a new folder"));
    EXPECT_THAT(node.Ask("/v1/topics/t/jobs", R"({"id":"later","delay_ms":3600000,"payload":"x"})"),
                HasSubstr("later"));
  }
  const RunningNode node(ConfigWith({"--shards=2"}));
  EXPECT_THAT(node.banner(), HasSubstr("jobs recovered: 1"));
  EXPECT_THAT(node.Ask("/v1/topics/t/jobs/later"), HasSubstr("scheduled"));
}

TEST_F(Node, AStopAnswersAReserveThatWaits) {
  RunningNode node(ConfigWith({}));
  ASSERT_THAT(node.Ask("/v1/topics/t/jobs", R"({"delay_ms":3600000,"payload":"x"})"), HasSubstr("id"));
  auto answer =
      std::async(std::launch::async, [&] { return node.Ask("/v1/topics/t/reserve", R"({"wait_ms":60000})"); });
  while (!node.Ask("/metrics").contains("\ntocsin_http_parked 1\n")) std::this_thread::yield();
  EXPECT_EQ(node.Stop(), kExitOk);
  EXPECT_THAT(answer.get(), HasSubstr("HTTP/1.1 ")) << "not cut off";
}

TEST_F(Node, OnlyAVirtualClockCanBeAdvanced) {
  const std::string second = R"({"ms":3600000})";
  {
    const RunningNode node(ConfigWith({}));
    EXPECT_THAT(node.Ask("/v1/clock/advance", second), HasSubstr(" 404 "));
  }
  const RunningNode node(ConfigWith({"--clock=virtual"}));
  node.Ask("/v1/topics/t/jobs", R"({"delay_ms":3600000,"payload":"in an hour"})");
  EXPECT_THAT(node.Ask("/v1/clock/advance", second), HasSubstr(" 200 "));
  EXPECT_THAT(node.Ask("/v1/topics/t/reserve", R"({"wait_ms":10000})"), HasSubstr("in an hour"));
}

TEST_F(Node, WithAFileOfAccessTokensEveryCallNeedsOne) {
  const std::string path = folder_.At("tokens");
  auth::Grant grant{.name = "me"};
  grant.scopes.Add(auth::Scope::kAdmin);
  const std::string token = auth::CreateToken(path, grant, FromMs(0)).value();
  const RunningNode node(ConfigWith({"--auth-token-file=" + path}));
  const std::string bearer = "authorization: Bearer " + token + "\r\n";
  EXPECT_THAT(node.Ask("/v1/topics"), HasSubstr(" 401 "));
  EXPECT_THAT(node.Ask("/v1/topics", "", bearer), HasSubstr(" 200 "));
  ASSERT_TRUE(auth::RevokeToken(path, std::string(auth::SplitToken(token)->id)));
  ::kill(::getpid(), SIGHUP);
  while (node.Ask("/v1/topics", "", bearer).contains(" 200 ")) std::this_thread::yield();
  EXPECT_THAT(node.Ask("/v1/topics", "", bearer), HasSubstr(" 401 "));
}

TEST_F(Node, AnAddressOrAFolderInUseIsAnErrorThatNamesIt) {
  const RunningNode node(ConfigWith({}));
  const auto folder = ServerNode::Open(ConfigWith({}));
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, HasSubstr(folder_.At("data")));
  const auto taken =
      ServerNode::Open(ConfigWith({"--data-dir=" + folder_.At("other"), "--resp-listen=" + node.address()}));
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, AllOf(HasSubstr("resp.listen"), HasSubstr(node.address())));
}

}  // namespace
}  // namespace tocsin
