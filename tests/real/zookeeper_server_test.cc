#include "real/zookeeper_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::real {
namespace {

using testing::HasSubstr;

TEST(ZooKeeperServer, ServesAgainAfterItWasKilledAndPaused) {
  if (const std::string why = WhyNoZooKeeper(); !why.empty()) GTEST_SKIP() << why;
  auto made = ZooKeeperServer::Make({.session_timeout_min = Millis(800)});
  ASSERT_TRUE(made) << made.error().message;
  ZooKeeperServer& server = **made;
  EXPECT_THAT(server.Ask("srvr").value(), HasSubstr("Mode: standalone"));
  EXPECT_THAT(server.Ask("conf").value(), HasSubstr("minSessionTimeout=800"));

  const uint16_t port = server.port();
  server.Kill();
  EXPECT_FALSE(server.running());
  EXPECT_FALSE(server.Ask("ruok"));
  const Status started = server.Start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(server.port(), port);

  server.Pause();
  EXPECT_TRUE(server.running());
  server.Continue();
  EXPECT_EQ(server.Ask("ruok").value_or(""), "imok");
  server.Stop();
  EXPECT_FALSE(server.running());
}

}  // namespace
}  // namespace tocsin::real
