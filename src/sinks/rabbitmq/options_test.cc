#include "sinks/rabbitmq/options.h"

#include <gmock/gmock.h>

namespace tocsin::rabbitmq {
namespace {

using testing::HasSubstr;
using testing::Not;

/// "host port tls vhost user", or the error.
std::string Shown(std::string_view url) {
  const Result<Options> parsed = ParseUrl(url);
  if (!parsed) return parsed.error().message;
  return fmt::format("{} {} {} {} {}", parsed->host, parsed->port, parsed->tls ? "tls" : "plain", parsed->vhost,
                     parsed->username);
}

TEST(RabbitmqUrl, WhatIsMissingHasItsDefault) {
  EXPECT_EQ(Shown("amqp://rabbit"), "rabbit 5672 plain / guest");
  EXPECT_EQ(Shown("amqps://rabbit"), "rabbit 5671 tls / guest");
  EXPECT_EQ(Shown("amqp://rabbit/"), "rabbit 5672 plain / guest");
  EXPECT_EQ(Shown("amqp://rabbit:1234/jobs"), "rabbit 1234 plain jobs guest");
  EXPECT_EQ(Shown("amqp://me@10.0.0.7:1234/%2F"), "10.0.0.7 1234 plain / me");
  EXPECT_EQ(Shown("amqps://a%40b@rabbit/x%20y"), "rabbit 5671 tls x y a@b");
  EXPECT_EQ(Shown("amqp://[::1]"), "::1 5672 plain / guest");
  EXPECT_EQ(Shown("amqp://[::1]:99/v"), "::1 99 plain v guest");
}

TEST(RabbitmqUrl, WhatCannotBeReadIsNamedAndNotShown) {
  for (const char* url :
       {"", "rabbit:5672", "http://rabbit", "amqp:/rabbit", "amqp://", "amqp://:5672", "amqp://me@", "amqp://@rabbit",
        "amqp://rabbit:", "amqp://rabbit:0", "amqp://rabbit:65536", "amqp://rabbit:5672x", "amqp://rabbit/a/b",
        "amqp://rabbit/%zz", "amqp://rabbit?heartbeat=1", "amqp://[::1", "amqp://[::1]x", "amqp://a:b:c"}) {
    const Result<Options> parsed = ParseUrl(url);
    ASSERT_FALSE(parsed) << url;
    EXPECT_EQ(parsed.error().field, "rabbitmq.url") << url;
    EXPECT_THAT(parsed.error().message, HasSubstr("it has the form amqp://user@host:port/vhost")) << url;
  }
}

TEST(RabbitmqUrl, APasswordIsRefusedAndNotShown) {
  for (const char* url : {"amqp://me:hidden@rabbit", "amqps://:hidden@rabbit", "amqp://me:hid@den@rabbit"}) {
    EXPECT_THAT(Shown(url), HasSubstr("rabbitmq.url holds a password")) << url;
    EXPECT_THAT(Shown(url), Not(HasSubstr("hid"))) << url;
  }
}

}  // namespace
}  // namespace tocsin::rabbitmq
