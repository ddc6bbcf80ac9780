// What tests against a real MariaDB share: the server, which they start once, and an empty database for each test.
#pragma once

#include <memory>
#include <string>

#include <gmock/gmock.h>

#include "clients/mysql/connection.h"
#include "real/mariadb_server.h"

namespace tocsin::mysql {

/// One for all tests of the program, running. An Error if none can be run.
inline Result<real::MariaDbServer*> SharedServer() {
  static const auto server = real::MariaDbServer::Make();
  if (!server) return std::unexpected(server.error());
  if (!(*server)->running()) TOCSIN_TRY((*server)->Start());
  return server->get();
}

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = real::WhyNoMariaDb(); !why.empty()) GTEST_SKIP() << why;
    const auto server = SharedServer();
    ASSERT_TRUE(server) << server.error().message;
    server_ = *server;
    options_ = {.port = server_->port(),
                .database = real::MariaDbServer::kDatabase,
                .username = real::MariaDbServer::kUsername,
                .password = real::MariaDbServer::kPassword};
    auto connection = Connection::Open(options_);
    ASSERT_TRUE(connection) << connection.error().message;
    connection_ = *std::move(connection);
    Run("DROP DATABASE shop");
    Run("CREATE DATABASE shop");
    Run("USE shop");
  }

  void Run(std::string_view sql) {
    const Status run = connection_->Run(sql);
    ASSERT_TRUE(run) << run.error().message << "\n" << sql;
  }
  int64_t Ask(std::string_view sql) {
    const auto number = connection_->AskNumber(sql);
    EXPECT_TRUE(number) << number.error().message << "\n" << sql;
    return number ? number->value_or(-1) : -1;
  }

  real::MariaDbServer* server_ = nullptr;
  Options options_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace tocsin::mysql
