#include "real/rabbitmq_server.h"

#include <gmock/gmock.h>

#include "real/ask.h"

namespace tocsin::real {
namespace {

/// A version of the protocol that it does not speak, which it answers with the one that it does.
std::string Greet(uint16_t port) {
  return AskText(port, std::string_view("AMQP\0\0\0\0", 8), Millis(5'000)).value_or("");
}

TEST(RabbitMqServer, ServesAgainAfterItWasKilledAndPaused) {
  if (const std::string why = WhyNoRabbitMq(); !why.empty()) GTEST_SKIP() << why;
  auto made = RabbitMqServer::Make();
  ASSERT_TRUE(made) << made.error().message;
  RabbitMqServer& server = **made;
  EXPECT_TRUE(Greet(server.port()).starts_with("AMQP"));
  const Status asked = server.Control({"await_startup"});
  EXPECT_TRUE(asked) << asked.error().message;

  const uint16_t port = server.port();
  server.Kill();
  EXPECT_FALSE(server.running());
  EXPECT_EQ(Greet(port), "");
  const Status started = server.Start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(server.port(), port);

  server.Pause();
  EXPECT_TRUE(server.running());
  server.Continue();
  EXPECT_TRUE(Greet(port).starts_with("AMQP"));
  server.Stop();
  EXPECT_FALSE(server.running());
}

}  // namespace
}  // namespace tocsin::real
