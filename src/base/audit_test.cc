#include "base/audit.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

namespace fs = std::filesystem;

class AuditTest : public testing::Test {
 protected:
  AuditTest() {
    std::string pattern = testing::TempDir() + "audit_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~AuditTest() override { fs::remove_all(folder_); }

  std::string path() const { return folder_ / "audit.log"; }
  static std::string Read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static void Act(std::string_view who) {
    const LogField field{"who", who};
    Audit({&field, 1});
  }

  fs::path folder_;
};

TEST_F(AuditTest, WithoutAFileLinesGoToTheLogWhateverItsLevel) {
  SetLogLevel(LogLevel::kError);
  testing::internal::CaptureStderr();
  Act("ann");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr(" info audit who=ann\n"));
  SetLogLevel(LogLevel::kInfo);
}

TEST_F(AuditTest, AFileHasEveryLineOfEveryThreadAndItsOwnerAloneReadsIt) {
  constexpr int kThreads = 4;
  constexpr int kLines = 500;
  {
    const auto file = AuditFile::Open(path());
    ASSERT_TRUE(file);
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([] {
        for (int line = 0; line < kLines; ++line) Act("ann");
      });
    }
  }
  const std::string text = Read(path());
  EXPECT_EQ(std::ranges::count(text, '\n'), kThreads * kLines);
  EXPECT_EQ(fs::status(path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(AuditTest, AFileThatWasRenamedIsMadeAgain) {
  {
    const auto file = AuditFile::Open(path());
    ASSERT_TRUE(file);
    fs::rename(path(), path() + ".1");
    Act("ann");
  }
  EXPECT_EQ(Read(path() + ".1"), "");
  EXPECT_THAT(Read(path()), testing::HasSubstr("who=ann"));
}

TEST_F(AuditTest, WhatCannotBeWrittenIsInTheLog) {
  testing::internal::CaptureStderr();
  {
    const auto file = AuditFile::Open(path());
    ASSERT_TRUE(file);
    fs::remove_all(folder_);
    Act("ann");
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, testing::HasSubstr("log.audit_file: cannot write"));
  EXPECT_THAT(log, testing::HasSubstr(" info audit who=ann\n"));
}

TEST_F(AuditTest, AFileThatCannotBeOpenedIsAnError) { EXPECT_FALSE(AuditFile::Open(folder_ / "missing" / "file")); }

}  // namespace
}  // namespace tocsin
