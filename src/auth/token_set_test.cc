#include "auth/token_set.h"

#include <gmock/gmock.h>

#include "auth/test_folder.h"

namespace tocsin::auth {
namespace {

Grant Admin(std::string name) {
  Grant grant{.name = std::move(name)};
  grant.scopes.Add(Scope::kAdmin);
  return grant;
}

std::string Create(const std::string& path, const std::string& name) {
  auto token = CreateToken(path, Admin(name), FromMs(1'800'000'000'000));
  EXPECT_TRUE(token);
  return token ? *token : "";
}

TEST(TokenSet, FindsTheBearerOfTheWholeTokenOnly) {
  const TestFolder folder;
  const std::string path = folder.At("tokens");
  const std::string a = Create(path, "a");
  const std::string b = Create(path, "b");
  const auto set = TokenSet::Load(path);
  ASSERT_TRUE(set);
  ASSERT_NE((*set)->Find(a), nullptr);
  EXPECT_EQ((*set)->Find(a)->name, "a");
  EXPECT_EQ((*set)->Find(b)->name, "b");
  // The id of one with the secret of the other, one character off, cut off, and none.
  EXPECT_EQ((*set)->Find(a.substr(0, 16) + b.substr(16)), nullptr);
  std::string off = a;
  off[30] = off[30] == 'a' ? 'b' : 'a';
  EXPECT_EQ((*set)->Find(off), nullptr);
  EXPECT_EQ((*set)->Find(a.substr(0, a.size() - 1)), nullptr);
  EXPECT_EQ((*set)->Find(""), nullptr);
}

TEST(TokenSet, FindsACertificateByItsWholeSubjectAndNeverByAToken) {
  const std::string token = *MakeToken();
  TokenRecord record{.id = std::string(SplitToken(token)->id), .certificate = "CN=worker"};
  record.grant.name = "workers";
  const TokenSet tokens({std::move(record)});
  ASSERT_NE(tokens.FindCertificate("CN=worker"), nullptr);
  EXPECT_EQ(tokens.FindCertificate("CN=worker")->name, "workers");
  for (const char* const subject : {"", "CN=worke", "CN=worker,O=Acme", "cn=worker"}) {
    EXPECT_EQ(tokens.FindCertificate(subject), nullptr) << subject;
  }
  EXPECT_EQ(tokens.Find(token), nullptr);
}

TEST(TokenSet, OfAnEmptyFileKnowsNobody) {
  const TestFolder folder;
  const auto set = TokenSet::Load(folder.Write("tokens", ""));
  ASSERT_TRUE(set);
  EXPECT_EQ((*set)->size(), 0U);
  EXPECT_EQ((*set)->Find(*MakeToken()), nullptr);
}

TEST(TokenWatch, ReadsAChangedFileOnceAndTellsOfABadOneOnce) {
  const TestFolder folder;
  const std::string path = folder.At("tokens");
  TokenWatch watch(path);
  EXPECT_FALSE(watch.Poll());  // missing
  EXPECT_EQ(*watch.Poll(), nullptr);

  const std::string token = Create(path, "a");
  auto set = watch.Poll();
  ASSERT_TRUE(set);
  ASSERT_NE(*set, nullptr);
  EXPECT_NE((*set)->Find(token), nullptr);
  EXPECT_EQ(*watch.Poll(), nullptr);

  ASSERT_TRUE(RevokeToken(path, std::string(SplitToken(token)->id)));
  set = watch.Poll();
  ASSERT_TRUE(set && *set != nullptr);
  EXPECT_EQ((*set)->Find(token), nullptr);

  folder.Write("tokens", "nonsense\n");
  EXPECT_FALSE(watch.Poll());
  EXPECT_EQ(*watch.Poll(), nullptr);
  watch.Forget();
  EXPECT_FALSE(watch.Poll());

  std::filesystem::remove(path);
  EXPECT_FALSE(watch.Poll());
  Create(path, "b");
  EXPECT_EQ((*watch.Poll())->size(), 1U);
}

}  // namespace
}  // namespace tocsin::auth
