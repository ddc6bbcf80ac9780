#include "server/token_guard.h"

#include <gmock/gmock.h>

#include "auth/token_file.h"
#include "server/server_test_site.h"

namespace tocsin {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class TokenGuardTest : public ServerTest {
 protected:
  static constexpr bool kLoopback = true;

  void SetUp() override { SetLogLevel(LogLevel::kOff); }

  Result<std::unique_ptr<TokenGuard>> Open(bool loopback) {
    return TokenGuard::Open(io_, ConfigWith({"--auth-token-file=" + path_}), loopback);
  }
  /// The id of a new access token in the file.
  std::string Add() {
    auth::Grant grant{.name = "me"};
    grant.scopes.Add(auth::Scope::kAdmin);
    last_ = auth::CreateToken(path_, grant, FromMs(0)).value();
    return std::string(auth::SplitToken(last_)->id);
  }
  /// Sends a hangup, and runs until the guard has seen it.
  void HangUp() {
    boost::asio::signal_set hangup(io_, SIGHUP);
    bool came = false;
    hangup.async_wait([&came](const boost::system::error_code&, int) { came = true; });
    ::raise(SIGHUP);
    while (!came) io_.run_one();
    io_.poll();  // the guard's handler is ready too
  }
  /// Starts the guard, and runs its loop until it hands on another set.
  TokenGuard::Tokens NextOf(TokenGuard& guard) {
    TokenGuard::Tokens next;
    guard.Start([&](TokenGuard::Tokens tokens) { next = std::move(tokens); });
    while (next == nullptr) io_.run_one();
    return next;
  }

  const std::string path_ = folder_.At("tokens");
  boost::asio::io_context io_;
  std::string last_;
};

TEST_F(TokenGuardTest, WithoutAFileThereIsNone) {
  const Config config = ConfigWith({});
  for (const bool loopback : {false, true}) EXPECT_EQ(TokenGuard::Open(io_, config, loopback).value(), nullptr);
}

TEST_F(TokenGuardTest, AFileThatCannotBeReadIsAnErrorThatNamesTheOption) {
  folder_.Write("tokens", "no file of tokens");
  const auto refused = Open(kLoopback);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("auth.token_file"), HasSubstr(path_)));
}

TEST_F(TokenGuardTest, WithoutAnyAccessTokenOnlyThisMachineMayReachTheServer) {
  folder_.Write("tokens", "");
  EXPECT_EQ(Open(kLoopback).value()->tokens()->size(), 0) << "every call is refused, until one is made";
  const auto refused = Open(!kLoopback);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("tocsin token create"));
}

TEST_F(TokenGuardTest, AChangeOfTheFileIsNoticedByItself) {
  Add();
  const auto guard = Open(!kLoopback).value();
  EXPECT_NE(guard->tokens()->Find(last_), nullptr);
  const std::string first = last_;
  Add();
  const TokenGuard::Tokens next = NextOf(*guard);
  EXPECT_EQ(next->size(), 2);
  EXPECT_NE(next->Find(last_), nullptr);
  EXPECT_NE(next->Find(first), nullptr);
  EXPECT_EQ(guard->tokens(), next);
}

TEST_F(TokenGuardTest, AHangupReadsTheFileEvenIfItLooksTheSame) {
  Add();
  const auto guard = Open(!kLoopback).value();
  ::raise(SIGHUP);
  EXPECT_EQ(NextOf(*guard)->size(), 1);
}

TEST_F(TokenGuardTest, AFileThatLosesItsLastAccessTokenIsAWarning) {
  Add();
  const auto guard = Open(!kLoopback).value();
  SetLogLevel(LogLevel::kWarn);
  folder_.Write("tokens", "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(NextOf(*guard)->size(), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), AllOf(HasSubstr(path_), HasSubstr("every call is refused")));
}

TEST_F(TokenGuardTest, AFileThatBreaksChangesNothing) {
  Add();
  const auto guard = Open(!kLoopback).value();
  const TokenGuard::Tokens before = guard->tokens();
  size_t handed_on = 0;
  guard->Start([&](const TokenGuard::Tokens&) { ++handed_on; });
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  HangUp();
  EXPECT_EQ(handed_on, 0);
  EXPECT_EQ(guard->tokens(), before);
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  HangUp();
  EXPECT_EQ(handed_on, 1) << "once it can be read again";
}

TEST_F(TokenGuardTest, AnAccessTokenThatChangesInItsPlaceIsInTheAudit) {
  Add();
  const auto guard = Open(!kLoopback).value();
  guard->Start([](const TokenGuard::Tokens&) {});
  SetLogLevel(LogLevel::kError);
  using Edit = void (*)(auth::TokenRecord& record);
  const auto audited = [&](Edit edit) {
    auto records = auth::ListTokens(path_).value();
    edit(records.front());
    folder_.Write("tokens", auth::TokensText(records));
    testing::internal::CaptureStderr();
    HangUp();
    return testing::internal::GetCapturedStderr();
  };
  const std::pair<Edit, std::string_view> edits[] = {
      {[](auth::TokenRecord& record) { record.grant.scopes.Add(auth::Scope::kSubmit); }, "changed=me\n"},
      {[](auth::TokenRecord& record) { record.grant.prefix = "shop."; }, "changed=me\n"},
      {[](auth::TokenRecord& record) { record.digest[0] ^= 1; }, "changed=me\n"},
      {[](auth::TokenRecord& record) { record.grant.name = "you"; }, "changed=me->you\n"}};
  for (const auto& [edit, changed] : edits) {
    EXPECT_THAT(audited(edit), AllOf(HasSubstr("act=tokensChanged " + std::string(changed)), Not(HasSubstr("added"))));
  }
  EXPECT_EQ(audited([](auth::TokenRecord&) {}), "");
}

}  // namespace
}  // namespace tocsin
