#include "base/secrets.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace tocsin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SecretsTest : public testing::Test {
 protected:
  SecretsTest() {
    std::string name = testing::TempDir() + "/tocsin_secrets_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~SecretsTest() override {
    std::filesystem::remove_all(folder_);
    ::unsetenv("TOCSIN_SECRET_ORDERS_EU_1");
  }
  void Write(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }

  std::string folder_;
};

TEST_F(SecretsTest, IsTheFileOfItsNameWithoutTheNewlineAtItsEnd) {
  const Secrets secrets(folder_);
  Write("plain", "one");
  Write("line", "two\n");
  Write("windows", "three\r\n");
  Write("lines", "four\n\n");
  Write("bytes", std::string_view("a\0\xff", 3));
  EXPECT_EQ(secrets.Find("plain").value(), "one");
  EXPECT_EQ(secrets.Find("line").value(), "two");
  EXPECT_EQ(secrets.Find("windows").value(), "three");
  EXPECT_EQ(secrets.Find("lines").value(), "four\n");
  EXPECT_EQ(secrets.Find("bytes").value(), std::string("a\0\xff", 3));
}

TEST_F(SecretsTest, AFileThatOthersCanReachIsNamedOnce) {
  const Secrets secrets(folder_);
  const Secrets copy = secrets;
  Write("open", "one");
  Write("closed", "two");
  ASSERT_EQ(::chmod((folder_ + "/open").c_str(), 0644), 0);
  ASSERT_EQ(::chmod((folder_ + "/closed").c_str(), 0600), 0);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(secrets.Find("open").value(), "one");
    EXPECT_EQ(copy.Find("open").value(), "one");
    EXPECT_EQ(secrets.Find("closed").value(), "two");
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr(folder_ + "/open holds a secret and has mode 0644"));
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
}

TEST_F(SecretsTest, AReplacedFileIsReadAnew) {
  const Secrets secrets(folder_);
  Write("key", "old");
  ASSERT_EQ(secrets.Find("key").value(), "old");
  Write("key", "new");
  EXPECT_EQ(secrets.Find("key").value(), "new");
}

TEST_F(SecretsTest, TheEnvironmentHasWhatTheFolderHasNot) {
  ::setenv("TOCSIN_SECRET_ORDERS_EU_1", "from the environment", 1);
  EXPECT_EQ(Secrets::VariableOf("orders.eu-1"), "TOCSIN_SECRET_ORDERS_EU_1");
  EXPECT_EQ(Secrets("").Find("orders.eu-1").value(), "from the environment");
  EXPECT_EQ(Secrets(folder_).Find("orders.eu-1").value(), "from the environment");
  Write("orders.eu-1", "from the file");
  EXPECT_EQ(Secrets(folder_).Find("orders.eu-1").value(), "from the file");
}

TEST_F(SecretsTest, SaysWhereItLooked) {
  const auto missing = Secrets(folder_).Find("nobody");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kInvalidArgument);
  EXPECT_THAT(missing.error().message, HasSubstr("no secret nobody"));
  EXPECT_THAT(missing.error().message, HasSubstr("TOCSIN_SECRET_NOBODY"));
  EXPECT_THAT(Secrets("").Find("nobody").error().message, HasSubstr("no folder of secrets is set"));
}

TEST_F(SecretsTest, ANameLeadsNowhereElse) {
  std::filesystem::create_directory(folder_ + "/inside");
  Write("outside", "not for you");
  const Secrets secrets(folder_ + "/inside");
  for (const std::string name : {"../outside", "..", ".", "", "/etc/passwd", ".hidden", "a/b", "a\nb", "caf\xc3\xa9"}) {
    const auto found = secrets.Find(name);
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().code, Code::kInvalidArgument);
  }
  EXPECT_FALSE(secrets.Find(std::string(129, 'a')));
}

TEST_F(SecretsTest, WhatIsNoSecretIsRefusedWithoutShowingIt) {
  const Secrets secrets(folder_);
  Write("empty", "\n");
  Write("large", std::string(70'000, 'x'));
  std::filesystem::create_directory(folder_ + "/folder");
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_THAT(secrets.Find("empty").error().message, HasSubstr("empty"));
  EXPECT_THAT(secrets.Find("large").error().message, HasSubstr("65536 bytes"));
  EXPECT_THAT(secrets.Find("large").error().message, Not(HasSubstr("xx")));
  EXPECT_THAT(secrets.Find("folder").error().message, HasSubstr("is not a file"));
  EXPECT_THAT(secrets.Find("pipe").error().message, HasSubstr("is not a file"));
}

}  // namespace
}  // namespace tocsin
