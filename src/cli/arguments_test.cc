#include "cli/arguments.h"

#include <gmock/gmock.h>

#include "cli/docs/docs.h"

namespace tocsin::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<Group> TestGroups() {
  return {{"Some",
           {{.name = "submit",
             .summary = "stores a job",
             .positionals = {{"TOPIC", "The topic."}, {.name = "PAYLOAD", .doc = "What.", .required = false}},
             .flags = {{.name = "in", .kind = Kind::kDuration, .doc = "When.", .value = "DURATION"},
                       {.name = "at", .kind = Kind::kMoment, .doc = "When.", .value = "MOMENT"},
                       {.name = "header", .doc = "A header.", .value = "NAME=VALUE", .repeated = true},
                       {.name = "count", .kind = Kind::kNumber, .doc = "How many.", .fallback = "7", .value = "N"},
                       {.name = "size", .kind = Kind::kSize, .doc = "How large.", .value = "SIZE"},
                       {.name = "trigger",
                        .kind = Kind::kChoice,
                        .doc = "What.",
                        .value = "WHAT",
                        .choices = {"time", "count", "either"}},
                       {.name = "yes", .kind = Kind::kSwitch, .doc = "Sure."}}},
            {.name = "ack",
             .summary = "ends deliveries",
             .positionals = {{"TOPIC", "The topic."}, {.name = "TOKEN", .doc = "Tokens.", .repeated = true}}},
            {.name = "topic set", .summary = "changes a topic", .positionals = {{"TOPIC", "The topic."}}},
            {.name = "topic get", .summary = "shows a topic", .positionals = {{"TOPIC", "The topic."}}},
            {.name = "clock advance",
             .summary = "moves the clock",
             .flags = {
                 {.name = "by", .kind = Kind::kDuration, .doc = "How far.", .value = "DURATION", .required = true}}}}}};
}

class ParseTest : public testing::Test {
 protected:
  Result<Parsed> Do(const std::vector<std::string>& words) {
    const Grammar grammar{groups_, global_flags_,
                          [this](std::string_view name) {
                            const auto found = environment_.find(std::string(name));
                            return found == environment_.end() ? std::nullopt : std::optional(found->second);
                          },
                          FromMs(1'796'000'000'000)};
    return Parse(grammar, words);
  }
  Arguments Must(const std::vector<std::string>& words) {
    auto parsed = Do(words);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return parsed ? parsed->arguments : Arguments();
  }
  std::string ErrorOf(const std::vector<std::string>& words) {
    const auto parsed = Do(words);
    return parsed ? "accepted" : parsed.error().message;
  }

  const std::vector<Group> groups_ = TestGroups();
  const std::vector<Flag> global_flags_{
      {.name = "server", .doc = "Where.", .fallback = "http://default", .value = "URL", .variable = "TOCSIN_SERVER"},
      {.name = "json", .kind = Kind::kSwitch, .doc = "JSON."}};
  std::map<std::string, std::string> environment_;
};

TEST_F(ParseTest, FindsPositionalsAndFlagsInAnyOrder) {
  const Arguments arguments = Must({"submit", "--in", "5s", "t", "--yes", "--header=a=b", "hello", "--header", "c="});
  EXPECT_EQ(arguments.Text("TOPIC"), "t");
  EXPECT_EQ(arguments.Text("PAYLOAD"), "hello");
  EXPECT_EQ(arguments.Duration("in"), Millis(5'000));
  EXPECT_THAT(arguments.All("header"), ElementsAre("a=b", "c="));
  EXPECT_TRUE(arguments.Has("yes"));
  EXPECT_FALSE(arguments.Has("at"));
  EXPECT_EQ(arguments.Number("at"), std::nullopt);
  EXPECT_EQ(arguments.Number("count"), 7) << "the fallback";
}

TEST_F(ParseTest, GlobalFlagsStandAnywhere) {
  EXPECT_EQ(Must({"--server", "http://a", "submit", "t"}).Text("server"), "http://a");
  EXPECT_EQ(Must({"submit", "t", "--server=http://a"}).Text("server"), "http://a");
  EXPECT_TRUE(Must({"topic", "--json", "get", "t"}).Has("json"));
}

TEST_F(ParseTest, TheFlagWinsOverTheVariableAndThatOverTheDefault) {
  EXPECT_EQ(Must({"submit", "t"}).Text("server"), "http://default");
  environment_["TOCSIN_SERVER"] = "";
  EXPECT_EQ(Must({"submit", "t"}).Text("server"), "http://default");
  environment_["TOCSIN_SERVER"] = "http://variable";
  EXPECT_EQ(Must({"submit", "t"}).Text("server"), "http://variable");
  EXPECT_EQ(Must({"submit", "t", "--server", "http://flag"}).Text("server"), "http://flag");
}

TEST_F(ParseTest, TwoDashesEndTheFlags) {
  EXPECT_EQ(Must({"submit", "t", "--", "--in"}).Text("PAYLOAD"), "--in");
  EXPECT_EQ(Must({"submit", "t", "--", "--help"}).Text("PAYLOAD"), "--help");
  EXPECT_EQ(Must({"submit", "t", "-"}).Text("PAYLOAD"), "-") << "one dash is no flag";
  EXPECT_EQ(Must({"submit", "t", ""}).Text("PAYLOAD"), "");
}

TEST_F(ParseTest, TheLastPositionalMayRepeat) {
  EXPECT_THAT(Must({"ack", "t", "x", "y"}).All("TOKEN"), ElementsAre("x", "y"));
  EXPECT_THAT(ErrorOf({"ack", "t"}), StartsWith("TOKEN is missing: Tokens.\nusage: tocsin ack TOPIC TOKEN..."));
}

TEST_F(ParseTest, UnknownNamesGetTheNearestKnownOne) {
  EXPECT_THAT(ErrorOf({"submti", "t"}), StartsWith("unknown command \"submti\"; did you mean \"submit\"?\nusage: "));
  EXPECT_THAT(ErrorOf({"topci", "get"}), HasSubstr("did you mean \"topic\"?"));
  EXPECT_THAT(ErrorOf({"topic", "gte"}), StartsWith("unknown command \"topic gte\"; did you mean \"topic get\"?"));
  EXPECT_THAT(ErrorOf({"submit", "t", "--inn", "5s"}), StartsWith("unknown flag \"--inn\"; did you mean \"--in\"?"));
  EXPECT_THAT(ErrorOf({"submit", "t", "--servr=x"}), HasSubstr("did you mean \"--server\"?"));
  EXPECT_THAT(ErrorOf({"submit", "t", "-5"}),
              StartsWith("unknown flag \"-5\"; put an argument that begins with - after --\n"));
  EXPECT_THAT(ErrorOf({"submit", "t", "--trigger", "tim"}),
              HasSubstr("is not time, count or either; did you mean \"time\"?"));
}

TEST_F(ParseTest, WrongUsageSaysWhatIsWrongAndHowItIsUsed) {
  EXPECT_THAT(ErrorOf({"submit"}),
              StartsWith("TOPIC is missing: The topic.\nusage: tocsin submit TOPIC [PAYLOAD] [flags]"));
  EXPECT_THAT(ErrorOf({"submit", ""}), StartsWith("TOPIC is empty\n"));
  EXPECT_THAT(ErrorOf({"submit", "t", "x", "y"}), StartsWith("\"y\" is too much\n"));
  EXPECT_THAT(ErrorOf({"submit", "t", "--in"}), StartsWith("--in needs a value: --in DURATION\n"));
  EXPECT_THAT(ErrorOf({"submit", "t", "--in", "--yes"}), StartsWith("--in needs a value"));
  EXPECT_THAT(ErrorOf({"submit", "t", "--in", "5s", "--in=6s"}), StartsWith("--in is given twice\n"));
  EXPECT_THAT(ErrorOf({"submit", "t", "--yes=no"}), StartsWith("--yes takes no value\n"));
  EXPECT_THAT(ErrorOf({"clock", "advance"}),
              StartsWith("--by DURATION is missing: How far.\nusage: tocsin clock advance --by DURATION\n"));
  EXPECT_THAT(ErrorOf({"topic"}),
              StartsWith("topic what?\nusage: tocsin topic set TOPIC\nusage: tocsin topic get TOPIC\n"));
  EXPECT_THAT(ErrorOf({"--json"}), StartsWith("no command is given\n"));
}

TEST_F(ParseTest, ValuesAreCheckedForTheirKind) {
  EXPECT_THAT(ErrorOf({"submit", "t", "--in", "5"}), StartsWith("--in: \"5\" needs a unit"));
  EXPECT_THAT(ErrorOf({"submit", "t", "--at", "2026-02-30"}),
              StartsWith("--at: \"2026-02-30\" is not in the calendar"));
  for (const char* number : {"-1", "x", "", "1.5", "1x"}) {
    EXPECT_THAT(ErrorOf({"submit", "t", std::string("--count=") + number}), HasSubstr("is not a whole number from 0"));
  }
  EXPECT_THAT(ErrorOf({"submit", "t", "--count", "9223372036854775808"}), HasSubstr("is too large"));
  EXPECT_EQ(Must({"submit", "t", "--size", "64MiB"}).Number("size"), 64 << 20);
  EXPECT_EQ(Must({"submit", "t", "--at", "@5"}).Number("at"), 5);
}

TEST_F(ParseTest, HelpIsHeardAnywhere) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"submit", "--help"},
                                                                 {"-h", "submit"},
                                                                 {"help", "submit"},
                                                                 {"submit", "t", "--nonsense", "--help"},
                                                                 {"--server", "http://x", "submit", "--in", "-h"}}) {
    const auto parsed = Do(words);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->action, JobAction::kHelp);
    ASSERT_NE(parsed->command, nullptr);
    EXPECT_EQ(parsed->command->name, "submit");
  }
  for (const std::string value : {"--help", "-h", "--version"}) {  // as a text, they are one
    const auto parsed = Do({"submit", "t", "--header", value});
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->action, JobAction::kRun);
    EXPECT_EQ(parsed->arguments.Text("header"), value);
  }
  EXPECT_EQ(Do({"topic", "--help"}).value().family, "topic");
  EXPECT_EQ(Do({"--help"}).value().command, nullptr);
  EXPECT_EQ(Do({"help"}).value().action, JobAction::kHelp);
  EXPECT_EQ(Do({"help", "topic"}).value().family, "topic");
  EXPECT_EQ(Do({"--version"}).value().action, JobAction::kVersion);
}

TEST_F(ParseTest, HelpShowsWhatTheTableSays) {
  const std::string help = CommandHelp(groups_[0].commands[0]);
  EXPECT_THAT(help, StartsWith("tocsin submit: stores a job\n\nusage: tocsin submit TOPIC [PAYLOAD] [flags]\n"));
  EXPECT_THAT(help, HasSubstr("How many. Default: 7."));
  EXPECT_THAT(help, HasSubstr("One of: time, count, either."));
  EXPECT_THAT(HelpText(groups_, global_flags_), HasSubstr("Where. Default: http://default. Variable: TOCSIN_SERVER."));
  EXPECT_THAT(FamilyHelp(groups_, "topic"), HasSubstr("topic get"));
  EXPECT_THAT(FamilyHelp(groups_, "topic"), Not(HasSubstr("submit")));
}

}  // namespace
}  // namespace tocsin::cli
