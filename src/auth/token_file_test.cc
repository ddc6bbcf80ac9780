#include "auth/token_file.h"

#include <set>

#include <gmock/gmock.h>

#include "auth/test_folder.h"

namespace tocsin::auth {
namespace {

using testing::HasSubstr;

const std::string kDigest(64, 'a');
const Time kNow = FromMs(1'800'000'000'123);

Grant Submitter(std::string name = "shop") {
  Grant grant{.name = std::move(name), .prefix = "orders."};
  grant.scopes.Add(Scope::kSubmit);
  return grant;
}

std::string ErrorOf(const std::string& text) {
  const auto parsed = ParseTokens(text);
  return parsed ? "no error" : parsed.error().message;
}

TEST(Token, HasAnIdAndASecretThatNeverComeTwice) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const auto token = MakeToken();
    ASSERT_TRUE(token);
    const auto parts = SplitToken(*token);
    ASSERT_TRUE(parts) << *token;
    EXPECT_TRUE(seen.emplace(parts->id).second);
    EXPECT_TRUE(seen.emplace(parts->secret).second);
    EXPECT_EQ(parts->secret.size(), 52U);
  }
}

TEST(Token, WhatHasAnotherFormIsNone) {
  const std::string good = "tocsin_abcdefgh_" + std::string(52, '2');
  EXPECT_TRUE(SplitToken(good));
  for (const std::string& bad :
       {std::string(), good + "2", good.substr(1), "Tocsin_abcdefgh_" + std::string(52, '2'),
        "tocsin_abcdefg1_" + std::string(52, '2'), "tocsin_abcdefgh-" + std::string(52, '2'),
        "tocsin_abcdefgh_" + std::string(51, '2') + "A", "tocsin_abcdefgh_" + std::string(51, '2') + '\0'}) {
    EXPECT_FALSE(SplitToken(bad)) << bad;
  }
}

TEST(Token, TheDigestIsSha256) {
  EXPECT_EQ(DigestText(DigestOf("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ParseDigest(DigestText(DigestOf("abc"))), DigestOf("abc"));
  EXPECT_FALSE(ParseDigest(std::string(64, 'g')));
  EXPECT_FALSE(ParseDigest(std::string(63, 'a')));
  EXPECT_FALSE(SameDigest(DigestOf("abc"), DigestOf("abd")));
}

TEST(TokenFile, VersionOneStaysReadable) {
  const auto records = ParseTokens(
      "# a comment\n\ntocsin-tokens 1\n# another\nabcdefgh\tsubmit,consume\tshop.*\t2026-11-15T05:27:06Z\t" + kDigest +
      "\tthe shop\nabcdefgi\tadmin\t*\t2026-11-15T05:27:06Z\t" + kDigest + "\tops");
  ASSERT_TRUE(records) << records.error().message;
  ASSERT_EQ(records->size(), 2U);
  EXPECT_EQ((*records)[0].id, "abcdefgh");
  EXPECT_EQ((*records)[0].grant.name, "the shop");
  EXPECT_EQ((*records)[0].grant.prefix, "shop.");
  EXPECT_TRUE((*records)[0].grant.scopes.Has(Scope::kConsume));
  EXPECT_FALSE((*records)[0].grant.scopes.Has(Scope::kAdmin));
  EXPECT_EQ((*records)[1].grant.prefix, "");
  EXPECT_EQ(ParseTokens(TokensText(*records))->size(), 2U);
}

TEST(TokenFile, VersionTwoNamesCertificates) {
  const std::string head = "tocsin-tokens 2\n";
  const std::string line = "abcdefgh\tconsume\tshop.*\t2026-11-15T05:27:06Z\tcertificate CN=worker,O=Acme\tworkers\n";
  const auto records = ParseTokens(head + line + "abcdefgi\tadmin\t*\t2026-11-15T05:27:06Z\t" + kDigest + "\tops\n");
  ASSERT_TRUE(records) << records.error().message;
  ASSERT_EQ(records->size(), 2U);
  EXPECT_EQ((*records)[0].certificate, "CN=worker,O=Acme");
  EXPECT_EQ((*records)[1].certificate, "");
  EXPECT_THAT(TokensText(*records), HasSubstr(head + line));
  EXPECT_THAT(TokensText({(*records)[1]}), HasSubstr("tocsin-tokens 1\n")) << "older servers read it";
  EXPECT_THAT(ErrorOf("tocsin-tokens 1\n" + line), HasSubstr("64 hexadecimal"));
  EXPECT_THAT(ErrorOf(head + line + "abcdefgi" + line.substr(8)),
              HasSubstr("line 3: the certificate CN=worker,O=Acme is in two lines"));
  EXPECT_THAT(ErrorOf(head + "abcdefgh\tconsume\t*\tc\tcertificate worker\tn\n"), HasSubstr("is not the subject"));
}

TEST(TokenFile, ACertificateIsMadeOnceAndTakenBackLikeAToken) {
  const TestFolder folder;
  const std::string path = folder.At("tokens");
  const auto id = CreateCertificate(path, Submitter(), "CN=worker", kNow);
  ASSERT_TRUE(id) << id.error().message;
  EXPECT_EQ(CreateCertificate(path, Submitter(), "CN=worker", kNow).error().code, Code::kConflict);
  for (const std::string& bad :
       {std::string(), std::string("worker"), std::string("CN=a\tb"), std::string("CN = worker"),
        std::string("subject=CN=worker"), std::string(2000, '=')}) {
    const auto refused = CreateCertificate(path, Submitter(), bad, kNow);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "certificate");
  }
  EXPECT_EQ(ListTokens(path)->front().certificate, "CN=worker");
  ASSERT_TRUE(RevokeToken(path, *id));
  EXPECT_EQ(ListTokens(path)->size(), 0U);
}

TEST(TokenFile, ErrorsNameTheLineAndWhatIsWrong) {
  const std::string head = "tocsin-tokens 1\n";
  EXPECT_EQ(ErrorOf(""), "no error");
  EXPECT_EQ(ErrorOf(head), "no error");
  EXPECT_THAT(ErrorOf("tocsin-tokens 3\n"),
              HasSubstr("line 1: \"tocsin-tokens 1\" or \"tocsin-tokens 2\" is expected"));
  EXPECT_THAT(ErrorOf(head + "x\n"), HasSubstr("line 2: an access token has 6 fields"));
  EXPECT_THAT(ErrorOf(head + "x\tsubmit\t*\tc\t" + kDigest + "\tn\n"), HasSubstr("\"x\" is not the id"));
  EXPECT_THAT(ErrorOf(head + "abcdefgh\tsubmid\t*\tc\t" + kDigest + "\tn\n"), HasSubstr("did you mean \"submit\"?"));
  EXPECT_THAT(ErrorOf(head + "abcdefgh\t\t*\tc\t" + kDigest + "\tn\n"), HasSubstr("no scope"));
  EXPECT_THAT(ErrorOf(head + "abcdefgh\tsubmit\tshop\tc\t" + kDigest + "\tn\n"), HasSubstr("do not end with *"));
  EXPECT_THAT(ErrorOf(head + "abcdefgh\tsubmit\t*\tc\tff\tn\n"), HasSubstr("64 hexadecimal"));
  EXPECT_THAT(ErrorOf(head + "abcdefgh\tsubmit\t*\tc\t" + kDigest + "\tn\tm\n"), HasSubstr("6 fields"));
  const std::string line = "abcdefgh\tsubmit\t*\tc\t" + kDigest + "\tn\n";
  EXPECT_THAT(ErrorOf(head + line + line), HasSubstr("line 3: the id abcdefgh is in two lines"));
}

TEST(TokenFile, CreateListRevoke) {
  const TestFolder folder;
  const std::string path = folder.At("tokens");
  const auto token = CreateToken(path, Submitter(), kNow);
  ASSERT_TRUE(token) << token.error().message;
  ASSERT_TRUE(CreateToken(path, Submitter("other"), kNow));
  const auto records = ListTokens(path);
  ASSERT_TRUE(records) << records.error().message;
  ASSERT_EQ(records->size(), 2U);
  EXPECT_EQ(records->front().id, SplitToken(*token)->id);
  EXPECT_EQ(records->front().created, "2027-01-15T08:00:00Z");
  EXPECT_EQ(records->front().grant.prefix, "orders.");
  EXPECT_THAT(folder.Read("tokens"), testing::Not(HasSubstr(std::string(SplitToken(*token)->secret))));

  const Status unknown = RevokeToken(path, "aaaaaaaa");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kNotFound);
  ASSERT_TRUE(RevokeToken(path, std::string(SplitToken(*token)->id)));
  EXPECT_EQ(ListTokens(path)->front().grant.name, "other");
  EXPECT_FALSE(RevokeToken(folder.At("missing"), "aaaaaaaa"));
}

TEST(TokenFile, WhatCannotBeWrittenInALineIsRefused) {
  const TestFolder folder;
  const std::string path = folder.At("tokens");
  Grant no_scope{.name = "n"};
  EXPECT_FALSE(CreateToken(path, no_scope, kNow));
  EXPECT_FALSE(CreateToken(path, Submitter(""), kNow));
  EXPECT_FALSE(CreateToken(path, Submitter("a\nb"), kNow));
  EXPECT_FALSE(CreateToken(path, Submitter("a\tb"), kNow));
  EXPECT_FALSE(CreateToken(path, Submitter(std::string(257, 'n')), kNow));
  Grant bad_prefix = Submitter();
  bad_prefix.prefix = "a\x7F";
  EXPECT_FALSE(CreateToken(path, bad_prefix, kNow));
  EXPECT_EQ(folder.Count(), 0U);
}

TEST(TokenFile, AMalformedFileIsNotOverwritten) {
  const TestFolder folder;
  const std::string path = folder.Write("tokens", "precious\n");
  const auto refused = CreateToken(path, Submitter(), kNow);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr(path));
  EXPECT_EQ(folder.Read("tokens"), "precious\n");
}

}  // namespace
}  // namespace tocsin::auth
