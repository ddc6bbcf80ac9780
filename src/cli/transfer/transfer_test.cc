#include "cli/transfer/transfer.h"

#include <gtest/gtest.h>

namespace tocsin::cli {
namespace {

json::object Object(std::string_view text) { return json::parse({text.data(), text.size()}).as_object(); }

/// What is submitted for a job that a server shows like this.
json::object Submitted(std::string_view shown, AsNew as_new = AsNew::kNo) {
  const json::object line = TransferLine("t", Object(shown));
  EXPECT_EQ(TextOf(line, "topic"), "t");
  const auto parsed = ParseTransferLine(json::serialize(line), 1, "", as_new);
  return parsed ? parsed->job : json::object{{"refused", parsed.error().message}};
}

TEST(Transfer, ACopyKeepsItsPast) {
  constexpr std::string_view kShown =
      R"({"id":"j","state":"dead","trigger":"time","reason":"r","attempt":2,"max_attempts":9,"due_ms":7,"created_ms":1,
          "last_attempt_ms":5,"died_ms":6,"key":"k","headers":{"a":"b"},"payload":"p"})";
  EXPECT_EQ(Submitted(kShown), Object(kShown));
  EXPECT_EQ(Submitted(kShown, AsNew::kYes), Object(R"({"id":"j","trigger":"time","max_attempts":9,"due_ms":7,"key":"k",
                                                       "headers":{"a":"b"},"payload":"p"})"));
}

TEST(Transfer, ALeasedJobWaitsAgain) {
  EXPECT_EQ(
      Submitted(R"({"id":"j","state":"leased","trigger":"either","count_left":2,"reason":"r","attempt":3,
                          "due_ms":7,"lease_deadline_ms":9,"leased_ms":8,"extensions":1,"holder":"ann","created_ms":1,
                          "last_attempt_ms":8,"payload":""})"),
      Object(R"({"id":"j","state":"scheduled","reason":"r","attempt":2,"due_ms":7,"created_ms":1,"payload":""})"));
}

TEST(Transfer, ACountGoesOnWithWhatIsLeft) {
  EXPECT_EQ(Submitted(R"({"id":"j","state":"scheduled","due_ms":null,"attempt":0,"trigger":"count","count_left":3})"),
            Object(R"({"id":"j","state":"scheduled","attempt":0,"trigger":"count","count":3})"));
  EXPECT_EQ(Submitted(R"({"id":"j","state":"scheduled","due_ms":9,"attempt":0,"trigger":"either","count_left":3})"),
            Object(R"({"id":"j","state":"scheduled","due_ms":9,"attempt":0,"trigger":"either","count":3})"));
  const json::object due = Object(R"({"id":"j","state":"scheduled","due_ms":5,"attempt":0})");
  EXPECT_EQ(Submitted(R"({"id":"j","state":"scheduled","due_ms":5,"attempt":0,"trigger":"either","count_left":0})"),
            due);
  EXPECT_EQ(Submitted(R"({"id":"j","state":"scheduled","due_ms":5,"attempt":0,"trigger":"count","count_left":3})"), due)
      << "it was fired";
  EXPECT_EQ(Submitted(R"({"id":"j","state":"scheduled","due_ms":5,"attempt":1,"trigger":"either","count_left":3})"),
            Object(R"({"id":"j","state":"scheduled","due_ms":5,"attempt":1})"))
      << "it was delivered";
}

TEST(Transfer, ALineThatSomebodyWroteIsSubmittedAsItIs) {
  const auto job =
      ParseTransferLine(R"({"topic":"t","id":"j","trigger":"count","count":2,"odd":1})", 1, "", AsNew::kNo);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->topic, "t");
  EXPECT_EQ(job->job, Object(R"({"id":"j","trigger":"count","count":2,"odd":1})"));
  EXPECT_EQ(ParseTransferLine(R"({"topic":"t"})", 1, "other", AsNew::kNo)->topic, "other");
  for (const std::string_view bad : {"", "[]", "{", R"({"id":"j"})"}) {
    EXPECT_FALSE(ParseTransferLine(bad, 1, "", AsNew::kNo));
  }
  for (const std::string_view over : {R"({"id":"j","state":"done"})", R"({"id":"j","state":"cancelled"})"}) {
    EXPECT_FALSE(ParseTransferLine(over, 1, "t", AsNew::kNo)) << over;
    EXPECT_FALSE(ParseTransferLine(over, 1, "t", AsNew::kYes)) << over;
  }
}

TEST(Transfer, AnIdIsMadeOfTheLineAndItsNumber) {
  const auto id = [](std::string_view line, int64_t number) {
    return TextOf(ParseTransferLine(line, number, "t", AsNew::kNo)->job, "id");
  };
  EXPECT_EQ(id(R"({"payload":"p"})", 1), id(R"({"payload":"p"})", 1));
  EXPECT_NE(id(R"({"payload":"p"})", 1), id(R"({"payload":"p"})", 2));
  EXPECT_NE(id(R"({"payload":"p"})", 1), id(R"({"payload":"q"})", 1));
}

TEST(Progress, ShowsCountRateAndPart) {
  EXPECT_EQ(ProgressLine("exported", 12000, -1, std::chrono::seconds(3)), "exported 12,000 jobs  4,000/s");
  EXPECT_EQ(ProgressLine("imported", 10, 0.5, std::chrono::seconds(1)),
            "imported 10 jobs  10/s  [###############               ] 50 %");
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(-1234567), "-1,234,567");
}

}  // namespace
}  // namespace tocsin::cli
