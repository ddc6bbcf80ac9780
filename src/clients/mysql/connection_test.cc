#include "clients/mysql/connection.h"

#include "clients/mysql/mysql_test_site.h"

namespace tocsin::mysql {
namespace {

using testing::HasSubstr;
using testing::Not;

class ConnectionTest : public ServerTest {
 protected:
  /// Why there is no connection with these options.
  Error Refusal(const Options& options) {
    const auto connection = Connection::Open(options);
    EXPECT_FALSE(connection);
    return connection ? Error() : connection.error();
  }
};

TEST_F(ConnectionTest, EverySessionIsSetUp) {
  EXPECT_EQ(Ask("SELECT @@session.time_zone = '+00:00'"), 1);
  EXPECT_EQ(Ask("SELECT @@session.tx_isolation = 'READ-COMMITTED'"), 1);
  EXPECT_EQ(Ask("SELECT @@session.sql_mode LIKE '%STRICT_ALL_TABLES%'"), 1);
  EXPECT_EQ(Ask("SELECT @@session.character_set_client = 'utf8mb4'"), 1);
  EXPECT_EQ(Ask("SELECT @@session.wait_timeout"), kSessionIdle.count());
}

TEST_F(ConnectionTest, ValuesComeBackAsTheyWent) {
  Run("CREATE TABLE t (id bigint PRIMARY KEY, bytes longblob)");
  std::string large(3 << 20, '\0');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31);
  const Value rows[][2] = {{int64_t{-1}, std::string_view(large)},
                           {int64_t{2}, std::string_view("")},
                           {int64_t{3}, std::monostate()},
                           {int64_t{4}, std::string_view("'; DROP TABLE t; --")}};
  for (const auto& row : rows) ASSERT_TRUE(connection_->Run("INSERT INTO t VALUES (?, ?)", row));
  auto statement = connection_->Prepare("SELECT id, bytes FROM t ORDER BY id");
  ASSERT_TRUE(statement);
  ASSERT_TRUE(statement->Run());
  for (const auto& row : rows) {
    ASSERT_EQ(statement->Next().value_or(false), true);
    EXPECT_EQ(statement->Number(0).value(), std::get<int64_t>(row[0]));
    const auto bytes = statement->Text(1).value();
    const auto* const text = std::get_if<std::string_view>(&row[1]);
    EXPECT_EQ(bytes.has_value(), text != nullptr);
    if (text != nullptr && bytes) EXPECT_TRUE(*bytes == *text);
  }
  EXPECT_EQ(statement->Next().value_or(true), false);
}

TEST_F(ConnectionTest, AStatementMayRunAgainBeforeItsRowsAreRead) {
  auto statement = connection_->Prepare("SELECT ? UNION ALL SELECT 2");
  ASSERT_TRUE(statement);
  for (const int64_t first : {5, 6}) {
    const Value values[] = {first};
    ASSERT_TRUE(statement->Run(values));
    ASSERT_TRUE(statement->Next().value());
    EXPECT_EQ(statement->Number(0).value(), first);
  }
  EXPECT_TRUE(statement->Drop());
  EXPECT_EQ(Ask("SELECT 7"), 7);
}

TEST_F(ConnectionTest, WhatFailsTogetherLeavesNothing) {
  Run("CREATE TABLE t (id bigint PRIMARY KEY)");
  const Status done = connection_->Together([&]() -> Status {
    TOCSIN_TRY(connection_->Run("INSERT INTO t VALUES (1)"));
    return connection_->Run("INSERT INTO t VALUES (1)");
  });
  EXPECT_FALSE(done);
  EXPECT_FALSE(connection_->lost());
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM t"), 0);
}

TEST_F(ConnectionTest, ARowThatAnotherTransactionHoldsIsForLater) {
  Run("CREATE TABLE t (id bigint PRIMARY KEY)");
  Run("INSERT INTO t VALUES (1)");
  auto other = Connection::Open(options_);
  ASSERT_TRUE(other);
  ASSERT_TRUE((*other)->Together([&]() -> Status {
    TOCSIN_TRY((*other)->Run("DELETE FROM t"));
    const Status waited = connection_->Run("DELETE FROM t");
    EXPECT_FALSE(waited);
    EXPECT_EQ(waited.error().code, Code::kUnavailable);
    EXPECT_FALSE(connection_->lost());
    return {};
  }));
  EXPECT_TRUE(connection_->Run("DELETE FROM t"));
}

TEST_F(ConnectionTest, AWrongPasswordIsSaidAndNotShown) {
  options_.password = "not-this-one";
  const Error error = Refusal(options_);
  EXPECT_EQ(error.code, Code::kForbidden);
  EXPECT_THAT(error.message, HasSubstr(options_.Where()));
  EXPECT_THAT(error.message, HasSubstr("Access denied for user 'tocsin'"));
  EXPECT_THAT(error.message, Not(HasSubstr("not-this-one")));
}

TEST_F(ConnectionTest, ADatabaseOrATableThatIsMissingIsSaid) {
  EXPECT_EQ(connection_->Run("SELECT 1 FROM nothing").error().code, Code::kUnsupportedFormat);
  EXPECT_FALSE(connection_->lost());
  options_.database = "nowhere";
  EXPECT_EQ(Refusal(options_).code, Code::kUnsupportedFormat);
}

TEST_F(ConnectionTest, AServerThatIsAwayIsUnavailable) {
  auto statement = connection_->Prepare("SELECT 1");
  ASSERT_TRUE(statement);
  server_->Kill();
  const Status run = statement->Run();
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Code::kUnavailable);
  EXPECT_TRUE(connection_->lost());
  EXPECT_EQ(Refusal(options_).code, Code::kUnavailable);
  const Status started = server_->Start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_TRUE(Connection::Open(options_));
}

TEST_F(ConnectionTest, AServerThatHangsIsUnavailableInTime) {
  options_.timeout = Millis(1'000);
  auto short_of_time = Connection::Open(options_);
  ASSERT_TRUE(short_of_time);
  server_->Pause();
  const Status run = (*short_of_time)->Run("SELECT 1");
  server_->Continue();
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Code::kUnavailable);
  EXPECT_TRUE((*short_of_time)->lost());
}

TEST_F(ConnectionTest, ThePortOfLocalhostCountsAndNoSocket) {
  options_.host = "localhost";
  const auto connection = Connection::Open(options_);
  EXPECT_TRUE(connection) << connection.error().message;
}

TEST_F(ConnectionTest, OverTlsWithTheRightAuthority) {
  options_.tls = true;
  options_.ca_file = server_->certificates().ca_file;
  const auto connection = Connection::Open(options_);
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ((*connection)
                ->AskNumber("SELECT VARIABLE_VALUE <> '' FROM information_schema.session_status WHERE "
                            "VARIABLE_NAME = 'Ssl_cipher'")
                .value(),
            1);
}

TEST_F(ConnectionTest, AStrangersCertificateIsRefused) {
  options_.tls = true;
  options_.ca_file = server_->certificates().wrong_ca_file;
  const Error error = Refusal(options_);
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("certificate"));
}

TEST_F(ConnectionTest, WithoutAFileTheAuthoritiesOfTheSystemCount) {
  options_.tls = true;
  EXPECT_THAT(Refusal(options_).message, HasSubstr("certificate"));
}

TEST_F(ConnectionTest, ACertificateOfAnotherHostIsRefused) {
  options_.host = "127.0.0.2";
  EXPECT_TRUE(Connection::Open(options_));
  options_.tls = true;
  options_.ca_file = server_->certificates().ca_file;
  const Error error = Refusal(options_);
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("certificate"));
}

}  // namespace
}  // namespace tocsin::mysql
