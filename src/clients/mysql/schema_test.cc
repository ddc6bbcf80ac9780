#include "clients/mysql/schema.h"

#include "clients/mysql/mysql_test_site.h"

namespace tocsin::mysql {
namespace {

using testing::HasSubstr;

class SchemaTest : public ServerTest {
 protected:
  /// What CheckSchema objects to.
  std::string Objection() {
    const auto checked = CheckSchema(*connection_);
    if (checked) return "none";
    EXPECT_EQ(checked.error().code, Code::kUnsupportedFormat);
    return checked.error().message;
  }
};

TEST_F(SchemaTest, MigrateMakesWhatCheckWants) {
  EXPECT_THAT(Objection(),
              HasSubstr("there is no table tocsin_outbox: run tocsin mysql migrate mysql://tocsin@127.0.0.1:"));
  const auto changed = Migrate(*connection_);
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_TRUE(*changed);
  EXPECT_EQ(Objection(), "none");
  EXPECT_EQ(Migrate(*connection_).value(), false);
}

TEST_F(SchemaTest, TheIdentityStays) {
  ASSERT_TRUE(Migrate(*connection_));
  const std::string identity = CheckSchema(*connection_).value();
  EXPECT_EQ(identity.size(), 32U);
  Run("DROP TABLE tocsin_outbox");
  EXPECT_THAT(Objection(), HasSubstr("has no column id"));
  EXPECT_EQ(Migrate(*connection_).value(), true);
  EXPECT_EQ(CheckSchema(*connection_).value(), identity);
}

TEST_F(SchemaTest, ANewerVersionIsLeftAlone) {
  ASSERT_TRUE(Migrate(*connection_));
  Run("UPDATE tocsin_schema SET version = 2");
  EXPECT_THAT(Objection(), HasSubstr("has version 2, and this program knows only 1"));
  EXPECT_EQ(Migrate(*connection_).error().code, Code::kUnsupportedFormat);
}

TEST_F(SchemaTest, WhatDiffersIsNamed) {
  ASSERT_TRUE(Migrate(*connection_));
  Run("ALTER TABLE tocsin_outbox DROP INDEX pick_up");
  EXPECT_THAT(Objection(), HasSubstr("no index pick_up (state, id)"));
  Run("ALTER TABLE tocsin_outbox ADD INDEX pick_up (state, id)");
  EXPECT_EQ(Objection(), "none");
  Run("ALTER TABLE tocsin_outbox MODIFY due_ms int");
  EXPECT_THAT(Objection(), HasSubstr("the column due_ms of tocsin_outbox is int and not bigint"));
  Run("ALTER TABLE tocsin_outbox DROP COLUMN due_ms");
  EXPECT_THAT(Objection(), HasSubstr("no column due_ms"));
  EXPECT_EQ(Migrate(*connection_).error().code, Code::kUnsupportedFormat);
}

TEST_F(SchemaTest, ATableWithoutTransactionsIsRefused) {
  ASSERT_TRUE(Migrate(*connection_));
  Run("ALTER TABLE tocsin_outbox ENGINE = MyISAM");
  EXPECT_THAT(Objection(), HasSubstr("not of the engine InnoDB"));
}

TEST_F(SchemaTest, TheTextIsWhatMigrateRuns) {
  const std::string text = SchemaText();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find(";\n", begin);
    ASSERT_NE(end, std::string::npos);
    Run(text.substr(begin, end - begin));
    begin = text.find_first_not_of('\n', end + 2);
  }
  EXPECT_EQ(Objection(), "none");
}

}  // namespace
}  // namespace tocsin::mysql
