#include "clients/redis/reply.h"

#include <gtest/gtest.h>

namespace tocsin::redis {
namespace {

std::string Shown(ReplyView view) {
  switch (view.kind()) {
    case Kind::kNil:
      return "nil";
    case Kind::kInteger:
      return fmt::format("{}", view.integer());
    case Kind::kText:
      return fmt::format("'{}'", view.text());
    case Kind::kError:
      return fmt::format("!{}", view.text());
    case Kind::kArray:
      break;
  }
  std::string all = "[";
  for (size_t i = 0; i < view.size(); ++i) all += (i == 0 ? "" : " ") + Shown(view[i]);
  return all + "]";
}

/// All replies of `wire`, fed in pieces of `piece` bytes, and how it ended.
std::string Read(std::string_view wire, size_t piece) {
  ReplyBuilder builder;
  std::string seen;
  for (size_t at = 0; at < wire.size(); at += piece) {
    builder.Feed(wire.substr(at, piece));
    for (;;) {
      const auto reply = builder.Next();
      if (!reply) return seen + "broken";
      if (!*reply) break;
      seen += Shown((*reply)->root()) + ";";
    }
  }
  return seen;
}

void ExpectRead(std::string_view wire, const std::string& seen) {
  EXPECT_EQ(Read(wire, wire.size()), seen);
  EXPECT_EQ(Read(wire, 1), seen);
  EXPECT_EQ(Read(wire, 3), seen);
}

TEST(ReplyBuilder, ReadsEveryKind) {
  ExpectRead("+OK\r\n-ERR no\r\n:-42\r\n$3\r\na\nb\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n",
             "'OK';!ERR no;-42;'a\nb';'';nil;nil;[];");
}

TEST(ReplyBuilder, ReadsArraysInArrays) {
  ExpectRead("*4\r\n:1\r\n*2\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n$-1\r\n*3\r\n-E\r\n*0\r\n+S\r\n:7\r\n",
             "[1 ['a' ['b']] nil [!E [] 'S']];7;");
}

TEST(ReplyBuilder, BeginsEachReplyAnew) {
  ExpectRead("*2\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n", "['a' 'b'];['c' 'd'];'e';");
}

TEST(ReplyBuilder, ReadsALargeText) {
  const std::string text(3'000'000, 'x');
  const std::string wire = fmt::format("*2\r\n${}\r\n{}\r\n:1\r\n", text.size(), text);
  EXPECT_EQ(Read(wire, 65'536), fmt::format("['{}' 1];", text));
}

TEST(ReplyBuilder, RefusesWhatIsNoRedisAndStaysBroken) {
  ExpectRead("HTTP/1.1 400 Bad Request\r\n\r\n", "broken");
  ExpectRead(":1\r\n%1\r\n+a\r\n+b\r\n", "1;broken");  // RESP3
  ExpectRead("*1\r\n$x\r\n", "broken");
  ExpectRead("$-2\r\n", "broken");

  ReplyBuilder builder;
  builder.Feed("?\r\n");
  EXPECT_EQ(builder.Next().error().code, Code::kCorrupt);
  builder.Feed("+OK\r\n");
  EXPECT_FALSE(builder.Next());
}

TEST(ReplyBuilder, RefusesArraysThatAreTooLargeOrTooDeep) {
  ReplyBuilder large;
  large.Feed("*2147483647\r\n");
  const auto refused = large.Next();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("elements"), std::string::npos) << refused.error().message;

  std::string deep;
  for (int i = 0; i < 9; ++i) deep += "*1\r\n";
  EXPECT_EQ(Read(deep + ":1\r\n", deep.size()), "broken");
}

TEST(ReplyBuilder, RefusesManyArraysThatAreTooLargeTogether) {
  std::string wire = "*3\r\n";
  for (int i = 0; i < 2; ++i) wire += fmt::format("*{}\r\n", ReplyBuilder::kElementsMax * 2 / 3);
  ReplyBuilder builder;
  builder.Feed(wire.substr(0, 4));
  // The second one is nested in the first.
  builder.Feed(wire.substr(4));
  EXPECT_FALSE(builder.Next());
}

TEST(Reply, IsNilBeforeItIsFilled) {
  const Reply reply;
  EXPECT_EQ(reply.kind(), Kind::kNil);
  EXPECT_TRUE(reply.root().nil());
  EXPECT_EQ(reply.root().text(), "");
  EXPECT_EQ(reply.root().integer(), 0);
  EXPECT_EQ(reply.root().size(), 0);
}

}  // namespace
}  // namespace tocsin::redis
