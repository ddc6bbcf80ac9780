#include "config/load.h"

#include <gmock/gmock.h>

#include "config/options.h"

namespace tocsin {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Inputs With(std::vector<std::string> arguments, std::vector<std::pair<std::string, std::string>> environment = {},
            const std::string& file = "") {
  return {.arguments = std::move(arguments),
          .environment = std::move(environment),
          .read_file = [file](const std::string& path) -> Result<std::string> {
            if (path != "t.toml") return Fail(Code::kIo, "cannot read {}", path);
            return file;
          },
          .machine = {.cores = 6, .memory_bytes = 10ULL << 30}};
}

Config MustLoad(const Inputs& inputs) {
  Result<Loaded> loaded = LoadConfig(inputs);
  EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().message);
  return loaded ? loaded->config : Config{};
}

std::string ErrorOf(const Inputs& inputs) {
  const Result<Loaded> loaded = LoadConfig(inputs);
  return loaded ? "no error" : loaded.error().message;
}

std::string ErrorOfFile(const std::string& text) { return ErrorOf(With({"--config", "t.toml"}, {}, text)); }

TEST(Load, DefaultsServe) {
  const Result<Loaded> loaded = LoadConfig(With({}));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->action, Action::kServe);
  EXPECT_EQ(loaded->config.data_dir, "./tocsin-data");
  EXPECT_EQ(loaded->config.http_listen, (Address{"127.0.0.1", 7420}));
  EXPECT_EQ(loaded->config.durability, Durability::kFsync);
  EXPECT_EQ(loaded->config.journal_segment_size, 64U << 20);
}

TEST(Load, ZeroStandsForAPartOfTheMachine) {
  const Config config = MustLoad(With({}));
  EXPECT_EQ(config.shards, 3);
  EXPECT_EQ(config.memory_limit, 7ULL << 30);
  Inputs small = With({});
  small.machine.cores = 1;
  EXPECT_EQ(MustLoad(small).shards, 1);
}

TEST(Load, FlagsWinOverEnvironmentOverFile) {
  const std::string file = "shards = 2\nlimits.batch = 2\nlimits.connections = 2\n";
  const Config config = MustLoad(With({"--config", "t.toml", "--shards=4"},
                                      {{"TOCSIN_SHARDS", "3"}, {"TOCSIN_LIMITS_BATCH", "3"}, {"HOME", "/"}}, file));
  EXPECT_EQ(config.shards, 4);
  EXPECT_EQ(config.limits_batch, 3);
  EXPECT_EQ(config.limits_connections, 2);
}

TEST(Load, TheLastOfTwoEqualFlagsWins) { EXPECT_EQ(MustLoad(With({"--shards", "2", "--shards", "5"})).shards, 5); }

TEST(Load, FileValuesMayStandInTablesOrDotted) {
  const Config config = MustLoad(With({"--config=t.toml"}, {},
                                      "data_dir = \"/d\"\nlog.level = \"warn\"\nmemory_limit = 134217728\n"
                                      "[http]\nlisten = \"[::1]:1\"\n[journal]\nsegment_size = \"8MiB\"\n"));
  EXPECT_EQ(config.data_dir, "/d");
  EXPECT_EQ(config.log_level, LogLevel::kWarn);
  EXPECT_EQ(config.memory_limit, 128U << 20);
  EXPECT_EQ(config.http_listen, (Address{"::1", 1}));
  EXPECT_EQ(config.journal_segment_size, 8U << 20);
}

TEST(Load, TheFileMayBeNamedInTheEnvironment) {
  EXPECT_EQ(MustLoad(With({}, {{"TOCSIN_CONFIG", "t.toml"}}, "shards = 7")).shards, 7);
  EXPECT_THAT(ErrorOf(With({}, {{"TOCSIN_CONFIG", "other.toml"}})), HasSubstr("cannot read other.toml"));
}

TEST(Load, UnknownNamesNameTheNearestKnownOne) {
  EXPECT_THAT(ErrorOf(With({"--shard", "1"})), HasSubstr("\"--shard\"; did you mean \"--shards\"?"));
  EXPECT_THAT(ErrorOf(With({"--confg-check"})), HasSubstr("did you mean \"--config-check\"?"));
  EXPECT_THAT(ErrorOf(With({}, {{"TOCSIN_HTTP_LISTN", "x"}})), HasSubstr("did you mean \"TOCSIN_HTTP_LISTEN\"?"));
  EXPECT_EQ(ErrorOfFile("\n[http]\nlistn = 1\n"),
            "t.toml:3: unknown key \"http.listn\"; did you mean \"http.listen\"?");
  EXPECT_EQ(ErrorOfFile("[nonesuch_at_all]\n"), "t.toml:1: unknown key \"nonesuch_at_all\"");
  EXPECT_THAT(ErrorOf(With({"serve"})), HasSubstr("unknown argument \"serve\""));
}

TEST(Load, VariablesThatOthersSetAreNotOurs) {
  MustLoad(With({}, {{"TOCSIN_SERVICE_HOST", "10.0.0.1"},
                     {"TOCSIN_PORT", "tcp://10.0.0.1:7420"},
                     {"TOCSIN_PORT_7420_TCP", "tcp://10.0.0.1:7420"},
                     {"TOCSIN_SERVER", "http://localhost:7420"},
                     {"TOCSIN_TOKEN", "x"},
                     {"TOCSIN_TOKEN_FILE", "x"},
                     {"TOCSIN_SECRET_ORDERS", "x"}}));
}

TEST(Load, WrongValuesNameOptionValueBoundAndPlace) {
  EXPECT_EQ(ErrorOf(With({"--durability-interval", "20s"})),
            "--durability-interval: durability_interval = \"20s\" is out of range: 1ms to 10s");
  EXPECT_EQ(ErrorOf(With({}, {{"TOCSIN_DURABILITY", "never"}})),
            "TOCSIN_DURABILITY: durability = \"never\" is not fsync, interval or os");
  EXPECT_THAT(ErrorOfFile("# a comment\nshards = 65\n"), HasSubstr("t.toml:2: shards = \"65\" is out of range"));
  EXPECT_EQ(ErrorOf(With({"--shards"})), "--shards needs a value");
}

TEST(Load, AWrongValueIsAnErrorEvenWhereItIsOverridden) {
  EXPECT_THAT(ErrorOf(With({"--shards", "1"}, {{"TOCSIN_SHARDS", "many"}})), HasSubstr("TOCSIN_SHARDS"));
}

TEST(Load, FileValuesHaveTheRightKind) {
  EXPECT_EQ(ErrorOfFile("shards = \"2\""), "t.toml:1: shards must be a whole number without quotes");
  EXPECT_EQ(ErrorOfFile("data_dir = 3"), "t.toml:1: data_dir must be a string in quotes");
  EXPECT_EQ(ErrorOfFile("shards = [1]"), "t.toml:1: shards must be a whole number without quotes");
  EXPECT_EQ(ErrorOfFile("http = 3"), "t.toml:1: unknown key \"http\"");
}

TEST(Load, BrokenTomlNamesTheLine) {
  EXPECT_THAT(ErrorOfFile("shards = 1\nclock = \"real\n"), HasSubstr("t.toml:2: "));
  EXPECT_THAT(ErrorOfFile("shards = 1\nshards = 2\n"), HasSubstr("t.toml:"));
  EXPECT_THAT(ErrorOfFile(std::string(100'000, '#')), HasSubstr("is over"));
}

TEST(Load, WhatIsNotUtf8IsRefusedBeforeItIsParsed) {
  EXPECT_EQ(MustLoad(With({"--config", "t.toml"}, {}, "data_dir = \"\u00e9\u20ac\U0001F600\"")).data_dir,
            "\u00e9\u20ac\U0001F600");
  for (const char* wrong : {"\xff", "\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_EQ(ErrorOfFile(std::string("\ndata_dir = '") + wrong + "'\n"),
              "t.toml:2: TOML is UTF-8, and this line is not");
  }
}

TEST(Load, DeeplyNestedTomlIsRefusedBeforeItTakesTheStack) {
  EXPECT_THAT(ErrorOfFile("shards = " + std::string(10'000, '[')), HasSubstr("more than 256 brackets"));
  std::string tables = "shards = ";
  for (int i = 0; i < 10'000; ++i) tables += "{a=";
  EXPECT_THAT(ErrorOfFile(tables), HasSubstr("more than 256 brackets"));
  EXPECT_THAT(ErrorOfFile("shards = " + std::string(256, '[')), HasSubstr("invalid format"));
}

TEST(Load, ConfigCheckPrintsTomlThatGivesTheSameConfig) {
  const Result<Loaded> first =
      LoadConfig(With({"--config-check", "--data-dir", "a \"b\"\\\n"}, {{"TOCSIN_SHARDS", "2"}}));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->action, Action::kPrint);
  EXPECT_THAT(first->text,
              AllOf(HasSubstr("# --data-dir\n"), HasSubstr("# TOCSIN_SHARDS\n"), HasSubstr("# default\n")));
  const Config again = MustLoad(With({"--config", "t.toml"}, {}, first->text));
  EXPECT_EQ(again.data_dir, "a \"b\"\\\n");
  EXPECT_EQ(again.shards, 2);
  EXPECT_EQ(again.memory_limit, first->config.memory_limit);
}

TEST(Load, ConfigCheckShowsNoSecrets) {
  const Result<Loaded> loaded =
      LoadConfig(With({"--config-check", "--alerts-webhook-url=https://pager.example/?token=abc123"}));
  ASSERT_TRUE(loaded);
  EXPECT_THAT(loaded->text, AllOf(Not(HasSubstr("abc123")), HasSubstr("\n# alerts.webhook_url is set, and not shown")));
  EXPECT_TRUE(LoadConfig(With({"--config", "t.toml"}, {}, loaded->text)));
  EXPECT_THAT(LoadConfig(With({"--config-check"}))->text, HasSubstr("\nalerts.webhook_url = \"\""));
}

TEST(Load, ConfigCheckFailsAsTheServerWould) {
  EXPECT_THAT(ErrorOf(With({"--config-check", "--shards", "x"})), HasSubstr("not a whole number"));
}

TEST(Load, HelpNamesEveryFlagWhateverElseIsWrong) {
  const Result<Loaded> help = LoadConfig(With({"--shards", "x", "--help"}, {{"TOCSIN_NONE", ""}}));
  ASSERT_TRUE(help);
  EXPECT_EQ(help->action, Action::kPrint);
  for (const Option& option : Options()) EXPECT_THAT(help->text, HasSubstr(FlagOf(option.key)));
}

TEST(Load, VersionAndDocsPrint) {
  EXPECT_THAT(LoadConfig(With({"--version"})).value().text, testing::StartsWith("tocsind "));
  EXPECT_THAT(LoadConfig(With({"--print-docs", "errors"})).value().text, HasSubstr("# Errors"));
  EXPECT_THAT(ErrorOf(With({"--print-docs=poem"})), HasSubstr("is not configuration, errors, sample or man"));
}

TEST(Load, ProcessInputsSplitsWhatMainGets) {
  const char* const arguments[] = {"tocsind", "--help"};
  const char* const environment[] = {"A=b=c", "EMPTY=", "odd", nullptr};
  const Inputs inputs = ProcessInputs(2, arguments, environment);
  EXPECT_THAT(inputs.arguments, testing::ElementsAre("--help"));
  EXPECT_THAT(inputs.environment, testing::ElementsAre(testing::Pair("A", "b=c"), testing::Pair("EMPTY", "")));
  EXPECT_GE(inputs.machine.cores, 1);
  EXPECT_GT(inputs.machine.memory_bytes, 1U << 20);
  EXPECT_FALSE(inputs.read_file("/nonesuch/file"));
  EXPECT_FALSE(inputs.read_file("/"));
  EXPECT_TRUE(inputs.read_file("/dev/null"));
}

TEST(Load, OnlyLoopbackIsServedAndConfigCheckSaysSo) {
  for (const char* own : {"127.0.0.1:0", "127.8.9.1:1", "localhost:1", "[::1]:1"}) {
    MustLoad(With({"--http-listen", own}));
  }
  for (const char* open : {"0.0.0.0:1", "192.168.0.7:1", "[::]:1", "[::ffff:127.0.0.1]:1", "example.org:1"}) {
    for (const auto& flags : {std::vector<std::string>{}, {"--config-check"}}) {
      std::vector<std::string> arguments = flags;
      arguments.insert(arguments.end(), {"--http-listen", open});
      const auto refused = LoadConfig(With(arguments));
      ASSERT_FALSE(refused) << open;
      EXPECT_EQ(refused.error().field, "http.listen");
      EXPECT_THAT(refused.error().message, HasSubstr("authentication"));
    }
  }
}

TEST(Load, NewIsForOneStart) {
  EXPECT_FALSE(MustLoad(With({})).begin_anew);
  EXPECT_TRUE(MustLoad(With({"--new"})).begin_anew);
  EXPECT_NE(ErrorOfFile("new = true"), "no error");
}

TEST(Load, OtherMachinesNeedTokensOrAnExplicitWord) {
  const Config guarded = MustLoad(With({"--http-listen", "0.0.0.0:1", "--auth-token-file", "/t"}));
  EXPECT_EQ(guarded.auth_token_file, "/t");
  EXPECT_FALSE(guarded.auth_allow_unauthenticated);
  EXPECT_TRUE(MustLoad(With({"--http-listen", "0.0.0.0:1", "--auth-allow-unauthenticated", "true"}))
                  .auth_allow_unauthenticated);
  EXPECT_THAT(ErrorOf(With({"--http-listen", "0.0.0.0:1", "--auth-allow-unauthenticated", "false"})),
              AllOf(HasSubstr("tocsin token create --file F"), HasSubstr("--auth-token-file F")));
}

TEST(Load, TrueAndFalseStandBareInTheFile) {
  const auto from = [](const std::string& value) {
    return With({"--config", "t.toml"}, {}, "[auth]\nallow_unauthenticated = " + value + "\n");
  };
  EXPECT_TRUE(MustLoad(from("true")).auth_allow_unauthenticated);
  EXPECT_FALSE(MustLoad(from("false")).auth_allow_unauthenticated);
  EXPECT_THAT(ErrorOf(from("\"true\"")), HasSubstr("must be true or false without quotes"));
  EXPECT_THAT(ErrorOf(With({"--auth-allow-unauthenticated", "yes"})), HasSubstr("is not false or true"));
}

TEST(Load, ABodyHasRoomForAPayload) {
  EXPECT_THAT(ErrorOf(With({"--limits-body-size", "64KiB"})),
              HasSubstr("limits.payload_size is 1048576 bytes, but a body may have only limits.body_size, 65536"));
  MustLoad(With({"--limits-body-size", "1MiB"}));
}

TEST(Load, ASegmentHasRoomForSeveralPayloads) {
  const auto refused = LoadConfig(With({"--journal-segment-size", "4MiB"}));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("at least 5 times limits.payload_size"));
  EXPECT_TRUE(LoadConfig(With({"--journal-segment-size", "4MiB", "--limits-payload-size", "512KiB"})));
}

}  // namespace
}  // namespace tocsin
