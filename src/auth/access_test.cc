#include "auth/access.h"

#include <gtest/gtest.h>

namespace tocsin::auth {
namespace {

ScopeSet Of(std::initializer_list<Scope> scopes) {
  ScopeSet set;
  for (const Scope scope : scopes) set.Add(scope);
  return set;
}

TEST(Grant, AdminIncludesTheOthersAndTheyIncludeNothing) {
  const Grant admin{.name = "a", .scopes = Of({Scope::kAdmin})};
  const Grant submit{.name = "s", .scopes = Of({Scope::kSubmit})};
  for (const Scope scope : {Scope::kSubmit, Scope::kConsume, Scope::kAdmin, Scope::kObserve}) {
    EXPECT_TRUE(admin.Allows(scope, "t"));
    EXPECT_EQ(submit.Allows(scope, "t"), scope == Scope::kSubmit);
  }
}

TEST(Grant, APrefixIsTheBeginningOfTheTopic) {
  const Grant grant{.name = "g", .scopes = Of({Scope::kConsume}), .prefix = "shop."};
  EXPECT_TRUE(grant.Allows(Scope::kConsume, "shop.orders"));
  EXPECT_TRUE(grant.Allows(Scope::kConsume, "shop."));
  EXPECT_FALSE(grant.Allows(Scope::kConsume, "shop"));
  EXPECT_FALSE(grant.Allows(Scope::kConsume, "my.shop.orders"));
  EXPECT_FALSE(grant.AllowsAll(Scope::kConsume));
  EXPECT_TRUE((Grant{.name = "g", .scopes = grant.scopes}.AllowsAll(Scope::kConsume)));
}

TEST(Grant, ScopesHaveNames) {
  EXPECT_EQ(Of({Scope::kConsume, Scope::kSubmit}).Text(), "submit,consume");
  EXPECT_EQ(ScopeSet().Text(), "");
  for (const std::string_view name : kScopeNames) EXPECT_EQ(Of({*ParseScope(name)}).Text(), name);
  EXPECT_FALSE(ParseScope("Submit"));
  EXPECT_FALSE(ParseScope(""));
}

TEST(Grant, PayloadsAreForConsumersAndForProducersThatNameTheJob) {
  const auto sees = [](Scope scope, Access access) {
    return SeesPayloads(Grant{.name = "g", .scopes = Of({scope})}, access);
  };
  for (const Access access : {Access::kShowJob, Access::kTopicObserve}) {
    EXPECT_TRUE(sees(Scope::kAdmin, access));
    EXPECT_TRUE(sees(Scope::kConsume, access));
    EXPECT_FALSE(sees(Scope::kObserve, access));
    EXPECT_EQ(sees(Scope::kSubmit, access), access == Access::kShowJob);
  }
}

}  // namespace
}  // namespace tocsin::auth
