#include "clients/redis/command.h"

#include <gtest/gtest.h>

namespace tocsin::redis {
namespace {

using std::string_view_literals::operator""sv;

std::string Encoded(const Command& command, bool whole_script = false) {
  std::string out = "before|";
  command.Encode(out, whole_script);
  return out.substr(7);
}

TEST(Command, IsEncodedAsAnArrayOfBulkStrings) {
  EXPECT_EQ(Encoded(Command("PING")), "*1\r\n$4\r\nPING\r\n");
  Command set("SET", "key");
  set.Add("").Add(int64_t{-12}).Add("a\0\r\n"sv);
  EXPECT_EQ(Encoded(set), "*5\r\n$3\r\nSET\r\n$3\r\nkey\r\n$0\r\n\r\n$3\r\n-12\r\n$4\r\na\0\r\n\r\n"sv);
}

TEST(Command, CarriesTheShaOfAScriptOrItsSource) {
  const Script script("one", "return 1");
  EXPECT_EQ(script.sha(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
  Command call(script, 2, "{t}a");
  call.Add("{t}b").Add("argument");
  const std::string rest = "$1\r\n2\r\n$4\r\n{t}a\r\n$4\r\n{t}b\r\n$8\r\nargument\r\n";
  EXPECT_EQ(Encoded(call), "*6\r\n$7\r\nEVALSHA\r\n$40\r\n" + script.sha() + "\r\n" + rest);
  EXPECT_EQ(Encoded(call, true), "*6\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n" + rest);
  EXPECT_EQ(call.script(), &script);
}

TEST(Command, HasTheHashSlotOfItsKey) {
  EXPECT_EQ(Command("PING").hash_slot(), -1);
  EXPECT_EQ(Command("GET", "foo").hash_slot(), 12'182);
  const Script script("one", "return 1");
  EXPECT_EQ(Command(script, 1, "foo").hash_slot(), 12'182);
}

TEST(HashSlot, IsCrc16OfTheKey) {
  EXPECT_EQ(HashSlot("123456789"), 12'739);
  EXPECT_EQ(HashSlot("foo"), 12'182);
  EXPECT_EQ(HashSlot("bar"), 5'061);
  EXPECT_EQ(HashSlot(""), 0);
}

TEST(HashSlot, IsThatOfTheFirstTagWhereThereIsOne) {
  EXPECT_EQ(HashSlot("{user1000}.following"), HashSlot("user1000"));
  EXPECT_EQ(HashSlot("foo{bar}{zap}"), HashSlot("bar"));
  EXPECT_EQ(HashSlot("foo{{bar}}zap"), HashSlot("{bar"));
  // These have none: empty, or not closed.
  EXPECT_NE(HashSlot("foo{}{bar}"), HashSlot("bar"));
  EXPECT_NE(HashSlot("foo{bar"), HashSlot("bar"));
  EXPECT_NE(HashSlot("}foo{"), HashSlot("foo"));
}

}  // namespace
}  // namespace tocsin::redis
