#include "cli/transfer/transfer.h"

#include <gtest/gtest.h>

namespace tocsin::cli {
namespace {

json::object Object(std::string_view text) { return json::parse({text.data(), text.size()}).as_object(); }

TEST(Transfer, ALineKeepsWhatCanBeSubmittedAgain) {
  EXPECT_EQ(TransferLine("t", Object(R"({"id":"j","key":"k","state":"scheduled","due_ms":7,"trigger":"time","attempt":2,
                                         "max_attempts":9,"reason":"r","headers":{"a":"b"},"payload":"p"})")),
            Object(R"({"topic":"t","id":"j","key":"k","max_attempts":9,"headers":{"a":"b"},"payload":"p","due_ms":7,
                       "state":"scheduled"})"));
}

TEST(Transfer, ACountGoesOnWithWhatIsLeft) {
  const json::object waiting = TransferLine(
      "t", Object(R"({"id":"j","state":"scheduled","due_ms":null,"trigger":"count","count_left":3,"payload":""})"));
  EXPECT_EQ(waiting, Object(R"({"topic":"t","id":"j","payload":"","trigger":"count","count":3,"state":"scheduled"})"));
  const json::object reached = TransferLine(
      "t", Object(R"({"id":"j","state":"leased","due_ms":5,"trigger":"count","count_left":0,"payload":""})"));
  EXPECT_EQ(reached, Object(R"({"topic":"t","id":"j","payload":"","due_ms":5,"state":"leased"})"));
}

TEST(Transfer, ALineIsSubmittedWithoutWhatIsForPeople) {
  const auto job = ParseTransferLine(R"({"topic":"t","id":"j","state":"dead","attempt":1,"odd":1})", 1, "");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->topic, "t");
  EXPECT_EQ(job->job, Object(R"({"id":"j","odd":1})"));
  EXPECT_EQ(ParseTransferLine(R"({"topic":"t"})", 1, "other")->topic, "other");
  for (const std::string_view bad : {"", "[]", "{", R"({"id":"j"})"}) EXPECT_FALSE(ParseTransferLine(bad, 1, ""));
  for (const std::string_view over : {R"({"id":"j","state":"done"})", R"({"id":"j","state":"cancelled"})"}) {
    EXPECT_FALSE(ParseTransferLine(over, 1, "t")) << over;
  }
}

TEST(Transfer, AnIdIsMadeOfTheLineAndItsNumber) {
  const auto id = [](std::string_view line, int64_t number) {
    return TextOf(ParseTransferLine(line, number, "t")->job, "id");
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
