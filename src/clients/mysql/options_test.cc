#include "clients/mysql/options.h"

#include <gmock/gmock.h>

namespace tocsin::mysql {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(MysqlOptions, AUrlNamesEverything) {
  const auto options = ParseUrl("outbox.url", "mysqls://shop%40x@db.intern:3307/orders");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_TRUE(options->tls);
  EXPECT_EQ(options->username, "shop@x");
  EXPECT_EQ(options->host, "db.intern");
  EXPECT_EQ(options->port, 3307);
  EXPECT_EQ(options->database, "orders");
  EXPECT_EQ(options->Where(), "MySQL at db.intern:3307, database orders");
  EXPECT_EQ(options->Url(), "mysqls://shop%40x@db.intern:3307/orders");
}

TEST(MysqlOptions, UserAndPortHaveDefaults) {
  const auto options = ParseUrl("outbox.url", "mysql://[::1]/orders");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_FALSE(options->tls);
  EXPECT_EQ(options->username, "root");
  EXPECT_EQ(options->host, "::1");
  EXPECT_EQ(options->port, 3306);
  EXPECT_EQ(options->Where(), "MySQL at [::1]:3306, database orders");
  EXPECT_EQ(options->Url(), "mysql://root@[::1]:3306/orders");
}

TEST(MysqlOptions, APasswordInTheUrlIsRefusedAndNotShown) {
  const auto options = ParseUrl("outbox.url", "mysql://shop:horse@db/orders");
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().field, "outbox.url");
  EXPECT_THAT(options.error().message, HasSubstr("outbox.url holds a password"));
  EXPECT_THAT(options.error().message, Not(HasSubstr("horse")));
}

TEST(MysqlOptions, WhatCannotBeReadIsRefused) {
  const std::string_view urls[] = {
      "",
      "http://db/orders",
      "mysql://db",
      "mysql://db/",
      "mysql:///orders",
      "mysql://db:/orders",
      "mysql://db:0/orders",
      "mysql://db:66000/orders",
      "mysql://[::1/orders",
      "mysql://@db/orders",
      "mysql://db/a/b",
      "mysql://db/a?b",
      "mysql://db/a%00b",
      "mysql://db/%zz",
  };
  for (const std::string_view url : urls) {
    const auto options = ParseUrl("--url", url);
    ASSERT_FALSE(options) << url;
    EXPECT_EQ(options.error().code, Code::kInvalidArgument) << url;
    EXPECT_THAT(options.error().message, HasSubstr("it has the form mysql://user@host:port/database")) << url;
    EXPECT_TRUE(options.error().message.starts_with("--url ")) << options.error().message;
  }
}

}  // namespace
}  // namespace tocsin::mysql
