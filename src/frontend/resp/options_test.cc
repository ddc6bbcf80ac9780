#include "frontend/resp/options.h"

#include <limits>

#include <gmock/gmock.h>

namespace tocsin::resp {
namespace {

using api::Arguments;
using api::VerbId;
using testing::AllOf;
using testing::HasSubstr;

const auto kFields = VerbOf(VerbId::kSubmitJobs).fields;

Status Read(Arguments& arguments, std::vector<std::string_view> args) { return ReadWords(args, kFields, arguments); }

Error ErrorOf(std::vector<std::string_view> args) {
  Arguments arguments;
  const Status status = Read(arguments, std::move(args));
  EXPECT_FALSE(status.has_value());
  return status ? Error{} : status.error();
}

TEST(OptionsTest, InAnyOrderAndCase) {
  Arguments arguments;
  ASSERT_TRUE(Read(arguments, {}));
  ASSERT_TRUE(Read(arguments, {"keep", "HEADER", "a", "b", "Delay", "250", "count", "10", "header", "keep", "delay",
                               "trigger", "EITHER", "ID", "i"}));
  EXPECT_EQ(arguments.delay_ms, 250);
  EXPECT_EQ(arguments.job.count, 10U);
  EXPECT_EQ(arguments.job.on_conflict, OnConflict::kKeep);
  EXPECT_EQ(arguments.job.trigger, Trigger::kEither);
  EXPECT_EQ(arguments.job.id, "i");
  ASSERT_EQ(arguments.job.headers.size(), 2U);
  EXPECT_EQ(arguments.job.headers[1].name, "keep");
  EXPECT_EQ(arguments.job.headers[1].value, "delay");
}

TEST(OptionsTest, AnUnknownWordIsToldTheNearestOne) {
  const Error near = ErrorOf({"DELAI", "5"});
  EXPECT_EQ(near.code, Code::kUnknownField);
  EXPECT_EQ(near.field, "DELAI");
  EXPECT_THAT(near.message, AllOf(HasSubstr("unknown option 'DELAI'"), HasSubstr("DELAY")));
  EXPECT_THAT(ErrorOf({"keeep"}).message, HasSubstr("KEEP"));
  EXPECT_THAT(
      ErrorOf({"xyzzy"}).message,
      HasSubstr("the known ones are ID, KEY, DELAY, AT, PAST, HEADER, TRIGGER, COUNT, ATTEMPTS, REPLACE, KEEP"));
  EXPECT_THAT(ErrorOf({""}).message, HasSubstr("unknown option ''"));
  EXPECT_LT(ErrorOf({std::string(100'000, 'x')}).message.size(), 1000U);
}

TEST(OptionsTest, EachOnceExceptThoseThatRepeat) {
  EXPECT_EQ(ErrorOf({"DELAY", "1", "delay", "1"}).message, "DELAY is given twice");
  EXPECT_EQ(ErrorOf({"KEEP", "REPLACE"}).message, "REPLACE and KEEP exclude each other: give one of them");
  EXPECT_EQ(ErrorOf({"HEADER", "a", "b", "HEADER", "a", "c"}).message, "HEADER a is given twice");
  Arguments arguments;
  EXPECT_TRUE(Read(arguments, {"HEADER", "a", "b", "HEADER", "c", "b"}));
}

TEST(OptionsTest, MoreHeadersThanAJobMayHaveAreNotRead) {
  std::vector<std::string> names;
  for (size_t i = 0; i <= kHeadersMax; ++i) names.push_back(fmt::format("h{}", i));
  std::vector<std::string_view> args;
  for (const std::string& name : names) args.insert(args.end(), {"HEADER", name, "v"});
  EXPECT_EQ(ErrorOf(args).code, Code::kTooLarge);
  EXPECT_EQ(ErrorOf(args).field, "HEADER");
  args.resize(args.size() - 3);
  Arguments arguments;
  EXPECT_TRUE(Read(arguments, args));
}

TEST(OptionsTest, AValueIsMissing) {
  EXPECT_EQ(ErrorOf({"KEEP", "DELAY"}).message, "DELAY needs a value");
  EXPECT_EQ(ErrorOf({"HEADER", "a"}).message, "HEADER needs 2 values, and has 1");
}

TEST(OptionsTest, NumbersHaveARange) {
  EXPECT_EQ(ErrorOf({"ATTEMPTS", "1001"}).message, "ATTEMPTS is '1001': it takes an integer from 1 to 1000");
  for (const std::string_view text :
       {"", "-1", "+1", " 1", "1 ", "1.0", "1e2", "0x10", "one", "99999999999999999999"}) {
    const Error error = ErrorOf({"ATTEMPTS", text});
    EXPECT_EQ(error.code, Code::kInvalidArgument) << text;
    EXPECT_EQ(error.field, "ATTEMPTS");
    EXPECT_THAT(error.message, HasSubstr("from 1 to 1000"));
  }
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(*api::ReadNumber("n", "9223372036854775807", 0, kMost), kMost);
  EXPECT_FALSE(api::ReadNumber("n", "9223372036854775808", 0, kMost));
  EXPECT_EQ(*api::ReadNumber("n", "-7", -7, 0), -7);
  EXPECT_EQ(*api::ReadNumber("n", "0007", 0, 9), 7);
}

TEST(OptionsTest, AnEmptyNameIsNotTakenForNone) {
  for (const api::Verb& verb : api::Verbs()) {
    for (const api::Field& field : verb.fields) {
      if (field.word != "ID" && field.word != "KEY") continue;
      Arguments arguments;
      const std::vector<std::string_view> args{field.word, ""};
      const Status status = ReadWords(args, verb.fields, arguments);
      ASSERT_FALSE(status) << verb.command;
      EXPECT_EQ(status.error().message, fmt::format("{} is empty: it takes 1 to 256 bytes", field.word));
    }
  }
}

TEST(OptionsTest, AChoiceNamesTheOthers) {
  EXPECT_EQ(ErrorOf({"TRIGGER", "blue"}).message, "TRIGGER is 'blue': it takes one of time, count, either");
}

TEST(OptionsTest, FixedArgumentsStandFirst) {
  Arguments arguments;
  const std::vector<std::string_view> args{"id", "event", "BY", "3", "KEY", "k"};
  ASSERT_TRUE(ReadArguments(args, VerbOf(VerbId::kCountJob), arguments));
  EXPECT_EQ(arguments.job.id, "id");
  EXPECT_EQ(arguments.job.key, "k");
  EXPECT_EQ(arguments.event, "event");
  EXPECT_EQ(arguments.by, 3);
  const std::vector<std::string_view> both{"payload", "DELAY", "1", "AT", "2"};
  const Status status = ReadArguments(both, VerbOf(VerbId::kSubmitJobs), arguments);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().field, "AT");
}

TEST(OptionsTest, SettingsOfATopic) {
  const std::vector<std::string_view> args{"lease_ms", "7", "PAUSED", "True", "sink", "Webhook", "retry_4xx", "FALSE"};
  const auto change = ReadSettings(args);
  ASSERT_TRUE(change) << change.error().message;
  Topic topic;
  Apply(*change, topic);
  EXPECT_EQ(topic.lease, Millis(7));
  EXPECT_TRUE(topic.paused);
  EXPECT_EQ(topic.delivery.sink, "webhook");
  EXPECT_FALSE(topic.delivery.Flag("retry_4xx"));
  const auto error = [](std::vector<std::string_view> wrong) { return ReadSettings(wrong).error(); };
  EXPECT_EQ(error({"SLOTS", "2000"}).message, "SLOTS is '2000': it takes an integer from 1 to 1024");
  EXPECT_EQ(error({"SLOTS", "2", "slots", "2"}).message, "SLOTS is given twice");
  EXPECT_EQ(error({"SLOTS"}).message, "SLOTS needs a value");
  EXPECT_THAT(error({"SLOT", "2"}).message, HasSubstr("did you mean \"SLOTS\"?"));
}

}  // namespace
}  // namespace tocsin::resp
