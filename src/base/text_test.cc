#include "base/text.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using namespace std::string_view_literals;

std::string Base64(std::string_view bytes) {
  std::string out = "x";  // what is there already stays
  AppendBase64(out, bytes);
  return out.substr(1);
}

TEST(IsUtf8, TellsTextFromBytes) {
  for (const auto text : {""sv, "ascii that is longer than eight bytes"sv, "\xC2\x80"sv, "\xE0\xA0\x80"sv,
                          "\xED\x9F\xBF"sv, "\xF0\x90\x80\x80"sv, "\xF4\x8F\xBF\xBF"sv, "12345678\xC3\xBC"sv}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  for (const auto bytes :
       {"\x80"sv, "\xC1\x80"sv, "\xC2"sv, "\xE0\x9F\x80"sv, "\xED\xA0\x80"sv, "\xE2\x82"sv, "\xF0\x8F\x80\x80"sv,
        "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "1234567\xFF"sv, "123456789\xC3"sv}) {
    EXPECT_FALSE(IsUtf8(bytes));
  }
}

TEST(Shown, IsTextAndShort) {
  EXPECT_EQ(Shown("orders"), "orders");
  EXPECT_EQ(Shown("\xff x"), "\\xff x");
  EXPECT_EQ(Shown(std::string(64, 'x')), std::string(64, 'x'));
  EXPECT_EQ(Shown(std::string(65, 'x')), std::string(64, 'x') + "...");
  EXPECT_EQ(Shown(std::string(62, 'x') + "\xE2\x82\xAC"), std::string(62, 'x') + "...");
  EXPECT_EQ(Shown(std::string(100, '\xC3')).substr(0, 8), "\\xc3\\xc3");
}

TEST(Base64, FollowsTheTestVectorsOfRfc4648) {
  const std::pair<std::string_view, std::string_view> vectors[] = {{"", ""},
                                                                   {"f", "Zg=="},
                                                                   {"fo", "Zm8="},
                                                                   {"foo", "Zm9v"},
                                                                   {"foob", "Zm9vYg=="},
                                                                   {"fooba", "Zm9vYmE="},
                                                                   {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(Base64(bytes), text);
    EXPECT_EQ(DecodeBase64(text), bytes);
  }
}

TEST(Base64, BringsEveryByteBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (size_t size = 250; size <= 256; ++size)
    EXPECT_EQ(DecodeBase64(Base64(bytes.substr(0, size))), bytes.substr(0, size));
}

TEST(Base64, RefusesOtherSpellings) {
  for (const auto text : {"Zg"sv, "Zg="sv, "Zh=="sv, "Zm9="sv, "Z==="sv, "===="sv, "Zm 9"sv, "Zg==Zg=="sv, "Zm-_"sv}) {
    EXPECT_FALSE(DecodeBase64(text)) << text;
  }
}

TEST(DecodePercent, DecodesBytesAndRefusesHalfEscapes) {
  EXPECT_EQ(DecodePercent("a%2Fb%20c+d", false), "a/b c+d");
  EXPECT_EQ(DecodePercent("a+b%2B", true), "a b+");
  EXPECT_EQ(DecodePercent("%c3%BC", false), "ü");
  EXPECT_FALSE(DecodePercent("%", false));
  EXPECT_FALSE(DecodePercent("%2", false));
  EXPECT_FALSE(DecodePercent("%zz", false));
}

TEST(AppendPercent, KeepsWhatAPathSegmentMayHold) {
  std::string out = "/";  // what is there already stays
  AppendPercent(out, "a-B_9.~/? %ü+");
  EXPECT_EQ(out, "/a-B_9.~%2F%3F%20%25%C3%BC%2B");
  EXPECT_EQ(DecodePercent(out, false), "/a-B_9.~/? %ü+");
}

TEST(DidYouMean, NamesWhatIsNearAndNothingElse) {
  const std::vector<std::string_view> names{"delay_ms", "due_ms", "key", "payload", "on_conflict"};
  const std::pair<std::string_view, std::string_view> near[] = {
      {"delay", "delay_ms"}, {"deley_ms", "delay_ms"},    {"payloda", "payload"},
      {"kei", "key"},        {"conflict", "on_conflict"}, {"on_conflikt", "on_conflict"}};
  for (const auto& [unknown, meant] : near) {
    EXPECT_EQ(DidYouMean(unknown, names), "; did you mean \"" + std::string(meant) + "\"?") << unknown;
  }
  for (const std::string_view unknown : {"", "k", "when", "colour", "pay_at", "on_", "priority"}) {
    EXPECT_EQ(DidYouMean(unknown, names), "") << unknown;
  }
}

}  // namespace
}  // namespace tocsin
