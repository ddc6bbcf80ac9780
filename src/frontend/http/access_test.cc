#include <gmock/gmock.h>

#include "frontend/http/router.h"

namespace tocsin::http {
namespace {

using auth::Scope;
using testing::HasSubstr;
using testing::Not;

constexpr std::array kAll{Access::kOpen,       Access::kSubmit,       Access::kConsume,
                          Access::kShowJob,    Access::kTopicObserve, Access::kTopicAdmin,
                          Access::kListTopics, Access::kNodeObserve,  Access::kNodeAdmin};

class AccessTest : public testing::Test {
 protected:
  AccessTest() {
    Add(submit_, {Scope::kSubmit}, "");
    Add(consume_, {Scope::kConsume}, "");
    Add(observe_, {Scope::kObserve}, "");
    Add(admin_, {Scope::kAdmin}, "");
    Add(narrow_, {Scope::kAdmin}, "shop.");
    tokens_ = std::make_unique<auth::TokenSet>(std::move(records_));
  }

  void Add(std::string& token, std::initializer_list<Scope> scopes, const std::string& prefix) {
    token = *auth::MakeToken();
    const auto parts = *auth::SplitToken(token);
    auth::TokenRecord record{.id = std::string(parts.id), .digest = auth::DigestOf(parts.secret)};
    record.grant.prefix = prefix;
    for (const Scope scope : scopes) record.grant.scopes.Add(scope);
    records_.push_back(std::move(record));
  }

  std::string Check(Access needed, const std::string& token, std::string_view topic = "t") const {
    const auto grant = CheckAccess(tokens_.get(), needed, {"Bearer " + token}, topic);
    if (grant) return "";
    EXPECT_EQ(grant.error().code, Code::kForbidden);
    EXPECT_THAT(grant.error().message, Not(HasSubstr(token.substr(0, 16))));
    return grant.error().message;
  }

  bool Allowed(Access needed, const std::string& token, std::string_view topic = "t") const {
    return Check(needed, token, topic).empty();
  }

  std::vector<auth::TokenRecord> records_;
  std::unique_ptr<auth::TokenSet> tokens_;
  std::string submit_;
  std::string consume_;
  std::string observe_;
  std::string admin_;
  std::string narrow_;
};

TEST_F(AccessTest, WithoutAuthenticationEverybodyMayDoEverything) {
  for (const Access needed : kAll) {
    const auto grant = CheckAccess(nullptr, needed, {}, "t");
    ASSERT_TRUE(grant);
    EXPECT_EQ(*grant, nullptr);
  }
}

TEST_F(AccessTest, WithoutAKnownTokenOnlyWhatIsOpen) {
  const std::string unknown = "Bearer " + *auth::MakeToken();
  for (const std::string& header : {std::string(), std::string("Bearer"), std::string("Bearer "), unknown,
                                    "Basic " + admin_, admin_, "Bearer " + admin_ + "x", "Bearer " + admin_ + " "}) {
    for (const Access needed : kAll) {
      const auto grant = CheckAccess(tokens_.get(), needed, {header}, "t");
      if (needed == Access::kOpen) {
        EXPECT_TRUE(grant);
        continue;
      }
      ASSERT_FALSE(grant) << header;
      EXPECT_EQ(grant.error().code, Code::kUnauthenticated);
      EXPECT_THAT(grant.error().message, Not(HasSubstr("tocsin_")));
    }
  }
}

TEST_F(AccessTest, ACertificateIsACallerUnlessTheCallHasAToken) {
  auth::TokenRecord record{.id = "abcdefgh", .certificate = "CN=worker"};
  record.grant.scopes.Add(Scope::kConsume);
  auto records = tokens_->records();
  records.push_back(std::move(record));
  const auth::TokenSet tokens(std::move(records));
  const auto check = [&](const std::string& authorization, std::string_view certificate, Access needed) {
    const auto grant = CheckAccess(&tokens, needed, {authorization, certificate}, "t");
    return grant ? "" : std::string(RowOf(grant.error().code).name);
  };
  EXPECT_EQ(check("", "CN=worker", Access::kConsume), "");
  EXPECT_EQ(check("", "CN=worker", Access::kSubmit), "forbidden");
  EXPECT_EQ(check("", "CN=other", Access::kConsume), "unauthenticated");
  EXPECT_EQ(check("Bearer " + submit_, "CN=worker", Access::kSubmit), "");
  EXPECT_EQ(check("Bearer " + submit_, "CN=worker", Access::kConsume), "forbidden");
  EXPECT_EQ(check("Bearer " + submit_ + "x", "CN=worker", Access::kConsume), "unauthenticated");
}

TEST_F(AccessTest, EachScopeReachesItsOwnCalls) {
  for (const Access needed : kAll) {
    EXPECT_TRUE(Allowed(needed, admin_));
    const bool open = needed == Access::kOpen || needed == Access::kShowJob;
    EXPECT_EQ(Allowed(needed, submit_), open || needed == Access::kSubmit);
    EXPECT_EQ(Allowed(needed, consume_), open || needed == Access::kConsume);
    const bool looks =
        needed == Access::kTopicObserve || needed == Access::kListTopics || needed == Access::kNodeObserve;
    EXPECT_EQ(Allowed(needed, observe_), open || looks);
  }
}

TEST_F(AccessTest, APrefixLeavesItsOwnTopicsAndNotTheNode) {
  for (const Access needed : kAll) {
    const bool of_node = needed == Access::kNodeObserve || needed == Access::kNodeAdmin;
    EXPECT_EQ(Allowed(needed, narrow_, "shop.orders"), !of_node);
    EXPECT_EQ(Allowed(needed, narrow_, "bank.orders"), needed == Access::kOpen || needed == Access::kListTopics);
  }
  EXPECT_EQ((*CheckAccess(tokens_.get(), Access::kListTopics, {"bearer  " + narrow_}, ""))->prefix, "shop.");
}

TEST_F(AccessTest, ARefusalSaysWhatWouldBeNeeded) {
  EXPECT_EQ(Check(Access::kConsume, submit_, "t"),
            "this call needs the scope consume and a topic prefix with which 't' begins; the access token has submit, "
            "for all "
            "topics");
  EXPECT_EQ(
      Check(Access::kNodeAdmin, narrow_),
      "this call needs the scope admin for all topics (no topic prefix); the access token has admin, for the topic "
      "prefix 'shop.'");
}

}  // namespace
}  // namespace tocsin::http
