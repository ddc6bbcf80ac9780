#include "cli/resp_reader.h"

#include <gmock/gmock.h>

namespace tocsin::cli {
namespace {

using Kind = RespValue::Kind;

/// For comparing: the values with their kinds, without spaces.
std::string Show(const RespValue& value) {
  const auto all = [&](char open, char close) {
    std::string text(1, open);
    for (const RespValue& item : value.items) text += (text.size() > 1 ? "," : "") + Show(item);
    return text + close;
  };
  switch (value.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kText:
      return "'" + value.text + "'";
    case Kind::kError:
      return "!" + value.text;
    case Kind::kInteger:
      return std::to_string(value.integer);
    case Kind::kDouble:
      return fmt::format("{}d", value.number);
    case Kind::kBool:
      return value.integer == 1 ? "true" : "false";
    case Kind::kArray:
      return all('[', ']');
    case Kind::kMap:
      return all('{', '}');
  }
  return "";
}

std::string ReadOne(std::string_view wire) {
  RespReader reader;
  reader.Append(wire);
  const auto value = reader.Next();
  if (!value) return std::string(RowOf(value.error().code).name);
  return *value ? Show(**value) : "more";
}

TEST(RespReader, TakesEveryTypeThatTheServerSends) {
  EXPECT_EQ(ReadOne("+OK\r\n"), "'OK'");
  EXPECT_EQ(ReadOne("-NOTOPIC there is none\r\n"), "!NOTOPIC there is none");
  EXPECT_EQ(ReadOne(":-42\r\n"), "-42");
  EXPECT_EQ(ReadOne(",0.125\r\n"), "0.125d");
  EXPECT_EQ(ReadOne("#t\r\n"), "true");
  EXPECT_EQ(ReadOne("#f\r\n"), "false");
  EXPECT_EQ(ReadOne("_\r\n"), "null");
  EXPECT_EQ(ReadOne("$-1\r\n"), "null");
  EXPECT_EQ(ReadOne("*-1\r\n"), "null");
  EXPECT_EQ(ReadOne({"$5\r\na\r\nb\0\r\n", 11}), std::string("'a\r\nb\0'", 7));
  EXPECT_EQ(ReadOne("$0\r\n\r\n"), "''");
  EXPECT_EQ(ReadOne("*0\r\n"), "[]");
  EXPECT_EQ(ReadOne("%0\r\n"), "{}");
  EXPECT_EQ(ReadOne("*3\r\n:1\r\n*2\r\n:2\r\n*0\r\n%1\r\n+a\r\n_\r\n"), "[1,[2,[]],{'a',null}]");
}

TEST(RespReader, TakesRepliesInAnyPieces) {
  const std::string wire = "*2\r\n$3\r\nabc\r\n%1\r\n+k\r\n,1.5\r\n:7\r\n-ERR x\r\n";
  for (size_t piece = 1; piece <= wire.size(); ++piece) {
    RespReader reader;
    std::string shown;
    for (size_t at = 0; at < wire.size(); at += piece) {
      reader.Append(std::string_view(wire).substr(at, piece));
      while (const auto value = reader.Next().value()) shown += Show(*value) + " ";
    }
    EXPECT_EQ(shown, "['abc',{'k',1.5d}] 7 !ERR x ") << "in pieces of " << piece;
  }
}

TEST(RespReader, RefusesWhatIsNotResp) {
  for (const char* wire :
       {"\r\n", "HTTP/1.1 400 Bad Request\r\n", ":\r\n", ":1x\r\n", ":99999999999999999999\r\n", "#x\r\n", ",\r\n",
        "_x\r\n", "$-2\r\n", "$x\r\n", "*\r\n", "$1\r\nabc\r\n", "(1\r\n", ">1\r\n"}) {
    EXPECT_EQ(ReadOne(wire), "corrupt") << wire;
  }
  EXPECT_EQ(ReadOne("+" + std::string(RespReader::kLineMax, 'x')), "corrupt");
}

TEST(RespReader, BoundsWhatAReplyMayHold) {
  EXPECT_EQ(ReadOne("$1073741825\r\n"), "too_large");
  EXPECT_EQ(ReadOne("*4194305\r\n"), "too_large");
  EXPECT_EQ(ReadOne("%9999999999999999999\r\n"), "too_large");
  std::string deep;
  for (size_t i = 0; i < RespReader::kDepthMax; ++i) deep += "*1\r\n";
  EXPECT_EQ(ReadOne(deep + ":1\r\n"), "[[[[[[[[1]]]]]]]]");
  EXPECT_EQ(ReadOne(deep + "*1\r\n"), "too_large");
  EXPECT_EQ(ReadOne("*4194304\r\n_\r\n"), "more");
  EXPECT_EQ(ReadOne("*4194304\r\n*1\r\n"), "too_large");
  EXPECT_EQ(ReadOne("*2\r\n*2097151\r\n_\r\n%1048576\r\n"), "too_large");
}

TEST(RespReader, BoundsTheSumOfTexts) {
  RespReader reader;
  reader.Append("*2\r\n$1000000\r\n" + std::string(1'000'000, 'x') + "\r\n");
  ASSERT_FALSE(reader.Next().value());
  reader.Append(fmt::format("${}\r\n", RespReader::kBytesMax - 500'000));
  EXPECT_EQ(reader.Next().error().code, Code::kTooLarge);
}

TEST(RespReader, ReadsOnBehindALargeReply) {
  RespReader reader;
  const std::string large(300'000, 'x');
  for (int i = 0; i < 3; ++i) {
    reader.Append("$300000\r\n" + large);
    ASSERT_FALSE(reader.Next().value());
    reader.Append("\r\n:1\r\n");
    EXPECT_EQ(reader.Next().value()->text, large);
    EXPECT_EQ(reader.Next().value()->integer, 1);
    ASSERT_FALSE(reader.Next().value());
  }
}

}  // namespace
}  // namespace tocsin::cli
