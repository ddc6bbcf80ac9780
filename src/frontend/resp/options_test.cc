#include "frontend/resp/options.h"

#include <limits>
#include <optional>

#include <gmock/gmock.h>

namespace tocsin::resp {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct Draft {
  std::optional<Millis> delay;
  uint32_t count = 0;
  bool keep = false;
  std::vector<std::string> headers;
};

constexpr Option<Draft> kOptions[] = {
    {"DELAY", 1, [](Draft& d, std::string_view word, Values v) { return Put(d.delay, Number(word, v[0], 0, 1000)); }},
    {"COUNT", 1, [](Draft& d, std::string_view word, Values v) { return Put(d.count, Number(word, v[0], 1, 10)); }},
    {"KEEP", 0,
     [](Draft& d, std::string_view, Values) -> Status {
       d.keep = true;
       return {};
     }},
    {"HEADER", 2,
     [](Draft& d, std::string_view, Values v) -> Status {
       d.headers.push_back(fmt::format("{}={}", v[0], v[1]));
       return {};
     },
     true},
};

Status Read(Draft& draft, std::vector<std::string_view> args) { return ReadOptions(draft, args, kOptions); }

Error ErrorOf(std::vector<std::string_view> args) {
  Draft draft;
  const Status status = Read(draft, std::move(args));
  EXPECT_FALSE(status.has_value());
  return status ? Error{} : status.error();
}

TEST(OptionsTest, InAnyOrderAndCase) {
  Draft draft;
  ASSERT_TRUE(Read(draft, {}));
  ASSERT_TRUE(Read(draft, {"keep", "HEADER", "a", "b", "Delay", "250", "count", "10", "header", "keep", "delay"}));
  EXPECT_EQ(draft.delay, Millis(250));
  EXPECT_EQ(draft.count, 10U);
  EXPECT_TRUE(draft.keep);
  EXPECT_THAT(draft.headers, ElementsAre("a=b", "keep=delay"));
}

TEST(OptionsTest, AnUnknownWordIsToldTheNearestOne) {
  const Error near = ErrorOf({"DELAI", "5"});
  EXPECT_EQ(near.code, Code::kUnknownField);
  EXPECT_EQ(near.field, "DELAI");
  EXPECT_THAT(near.message, AllOf(HasSubstr("unknown option 'DELAI'"), HasSubstr("DELAY")));
  EXPECT_THAT(ErrorOf({"keeep"}).message, HasSubstr("KEEP"));
  EXPECT_THAT(ErrorOf({"xyzzy"}).message, HasSubstr("the known ones are DELAY, COUNT, KEEP, HEADER"));
  EXPECT_THAT(ErrorOf({""}).message, HasSubstr("unknown option ''"));
  EXPECT_LT(ErrorOf({std::string(100'000, 'x')}).message.size(), 1000U);
}

TEST(OptionsTest, EachOnceButThoseThatRepeat) {
  EXPECT_EQ(ErrorOf({"DELAY", "1", "delay", "1"}).message, "DELAY is given twice");
  EXPECT_EQ(ErrorOf({"KEEP", "KEEP"}).field, "KEEP");
  Draft draft;
  EXPECT_TRUE(Read(draft, {"HEADER", "a", "b", "HEADER", "a", "b"}));
}

TEST(OptionsTest, AValueIsMissing) {
  EXPECT_EQ(ErrorOf({"KEEP", "DELAY"}).message, "DELAY needs a value");
  EXPECT_EQ(ErrorOf({"HEADER", "a"}).message, "HEADER needs 2 values, and has 1");
}

TEST(OptionsTest, NumbersHaveARange) {
  EXPECT_EQ(ErrorOf({"DELAY", "1001"}).message, "DELAY is '1001': it takes an integer from 0 to 1000");
  for (const std::string_view text :
       {"", "-1", "+1", " 1", "1 ", "1.0", "1e2", "0x10", "one", "99999999999999999999"}) {
    const Error error = ErrorOf({"COUNT", text});
    EXPECT_EQ(error.code, Code::kInvalidArgument) << text;
    EXPECT_EQ(error.field, "COUNT");
    EXPECT_THAT(error.message, HasSubstr("from 1 to 10"));
  }
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(*Number("n", "9223372036854775807", 0, kMost), kMost);
  EXPECT_FALSE(Number("n", "9223372036854775808", 0, kMost));
  EXPECT_EQ(*Number("n", "-7", -7, 0), -7);
  EXPECT_EQ(*Number("n", "0007", 0, 9), 7);
}

TEST(OptionsTest, AChoiceNamesTheOthers) {
  enum class Colour : uint8_t { kRed, kGreen };
  constexpr std::string_view kColours[] = {"red", "green"};
  Colour colour = Colour::kRed;
  ASSERT_TRUE(PutChoice(colour, "COLOUR", "GREEN", kColours));
  EXPECT_EQ(colour, Colour::kGreen);
  const Status status = PutChoice(colour, "COLOUR", "blue", kColours);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "COLOUR is 'blue': it takes one of red, green");
}

}  // namespace
}  // namespace tocsin::resp
