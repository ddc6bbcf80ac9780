#include "frontend/resp/writer.h"

#include <limits>

#include <gtest/gtest.h>

namespace tocsin::resp {
namespace {

/// What `write` appends in both protocols.
template <class Write>
void Expect(std::string_view resp2, std::string_view resp3, Write write) {
  std::string text2 = "before";
  std::string text3 = "before";
  Writer writer2(text2, Protocol::kResp2);
  Writer writer3(text3, Protocol::kResp3);
  write(writer2);
  write(writer3);
  EXPECT_EQ(text2, "before" + std::string(resp2));
  EXPECT_EQ(text3, "before" + std::string(resp3));
}

TEST(WriterTest, WhatBothProtocolsHave) {
  const auto same = [](std::string_view text, auto write) { Expect(text, text, write); };
  same("+OK\r\n", [](Writer& w) { w.Simple("OK"); });
  same("$0\r\n\r\n", [](Writer& w) { w.Text(""); });
  same(std::string_view("$4\r\n\r\n\0\xff\r\n", 10), [](Writer& w) { w.Text({"\r\n\0\xff", 4}); });
  same(":0\r\n", [](Writer& w) { w.Number(0); });
  same(":-9223372036854775808\r\n", [](Writer& w) { w.Number(std::numeric_limits<int64_t>::min()); });
  same(":9223372036854775807\r\n", [](Writer& w) { w.Number(std::numeric_limits<int64_t>::max()); });
  same("*0\r\n*3\r\n", [](Writer& w) {
    w.Array(0);
    w.Array(3);
  });
}

TEST(WriterTest, WhatRedisTwoLacks) {
  Expect("$-1\r\n", "_\r\n", [](Writer& w) { w.Null(); });
  Expect(":1\r\n:0\r\n", "#t\r\n#f\r\n", [](Writer& w) {
    w.Flag(true);
    w.Flag(false);
  });
  Expect("$5\r\n1.500\r\n", ",1.500\r\n", [](Writer& w) { w.Real(1.5); });
  Expect("$5\r\n0.000\r\n", ",0.000\r\n", [](Writer& w) { w.Real(0.0001); });
  Expect("*4\r\n", "%2\r\n", [](Writer& w) { w.Object(2); });
  Expect("*0\r\n", "%0\r\n", [](Writer& w) { w.Object(0); });
}

TEST(WriterTest, AnErrorIsOneLineWhateverItQuotes) {
  const Error error{Code::kTopicNotFound, std::string("no topic a\r\n+OK\r\n\tb\0c", 21), "topic"};
  const std::string_view line = "-NOTOPIC no topic a  +OK   b c\r\n";
  Expect(line, line, [&](Writer& w) { w.Fail(error); });
}

TEST(WriterTest, EveryCodeIsOneWordInCapitals) {
  for (const ErrorRow& row : ErrorTable()) {
    ASSERT_FALSE(row.resp.empty());
    for (const char c : row.resp) EXPECT_TRUE(c >= 'A' && c <= 'Z') << row.resp;
    std::string text;
    Writer(text, Protocol::kResp2).Fail({row.code, "why", {}});
    EXPECT_EQ(text, fmt::format("-{} why\r\n", row.resp));
  }
}

}  // namespace
}  // namespace tocsin::resp
