#include "frontend/resp/command.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "base/text.h"

namespace tocsin::resp {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

/// How many arguments a syntax has outside of its brackets: one for each word, an alternative counting once.
size_t LeastOf(std::string_view syntax) {
  size_t words = 0;
  size_t depth = 0;
  bool in_word = false;
  bool alternative = false;
  for (const char c : syntax) {
    if (c == '[') ++depth;
    if (c == '|' && depth == 0) alternative = true;
    const bool part = depth == 0 && c != ' ' && c != '|';
    if (part && !in_word && !alternative) ++words;
    in_word = part;
    if (c == ']') --depth;
  }
  return words;
}

TEST(CommandTest, TheTableIsInTheOrderOfNames) {
  EXPECT_FALSE(Commands().empty());
  EXPECT_TRUE(std::ranges::is_sorted(Commands(), {}, &Command::name));
  EXPECT_EQ(std::ranges::adjacent_find(Commands(), {}, &Command::name), Commands().end());
}

TEST(CommandTest, EveryCommandSaysHowItIsUsed) {
  for (const Command& command : Commands()) {
    SCOPED_TRACE(command.name);
    EXPECT_EQ(Capitals(command.name), command.name);
    EXPECT_THAT(command.summary, EndsWith("."));
    EXPECT_LE(command.args_min, command.args_max);
    EXPECT_EQ(command.syntax.empty(), command.args_max == 0);
    EXPECT_NE(command.run, nullptr);
    EXPECT_EQ(std::ranges::count(command.syntax, '['), std::ranges::count(command.syntax, ']'));
    const bool some = command.name == "COMMAND" || command.name == "INFO";  // a bounded number
    EXPECT_EQ(command.syntax.contains("..."), command.args_max == kAnyNumber || some) << command.args_max;
    if (command.name != "CLIENT" && command.name != "JOB.MSUBMIT") {
      EXPECT_EQ(LeastOf(command.syntax), command.args_min);
    }
  }
}

TEST(CommandTest, WhatIsAboutATopicAsksForItFirst) {
  for (const Command& command : Commands()) {
    if (!command.name.starts_with("JOB.") && !command.name.starts_with("TOPIC.")) continue;
    if (command.name == "TOPIC.LIST") continue;
    EXPECT_TRUE(command.syntax.starts_with("topic")) << command.name;
    EXPECT_GE(command.args_min, 1U) << command.name;
    EXPECT_NE(command.access, auth::Access::kOpen) << command.name;
    EXPECT_NE(command.access, auth::Access::kKnown) << command.name;
  }
}

TEST(CommandTest, IsFoundInAnyCase) {
  for (const Command& command : Commands()) EXPECT_EQ(FindCommand(command.name), &command);
  EXPECT_EQ(FindCommand("job.Submit"), FindCommand("JOB.SUBMIT"));
  for (const std::string_view name : {"", "JOB", "JOB.", "JOB.SUBMIT ", "PINGG"}) {
    EXPECT_EQ(FindCommand(name), nullptr) << name;
  }
  EXPECT_EQ(FindCommand(std::string(1 << 20, 'P')), nullptr);
}

TEST(CommandTest, AnUnknownOneIsToldWhatToUse) {
  const auto message = [](std::string_view name) {
    const Error error = UnknownCommand(name);
    EXPECT_EQ(error.code, Code::kUnknownCommand);
    return error.message;
  };
  EXPECT_THAT(message("JOB.SUBMITT"), AllOf(HasSubstr("unknown command 'JOB.SUBMITT'"), HasSubstr("JOB.SUBMIT")));
  EXPECT_THAT(message("job.reserv"), HasSubstr("JOB.RESERVE"));
  EXPECT_THAT(message("submit"), HasSubstr("did you mean \"JOB.SUBMIT\"?"));
  EXPECT_THAT(message("PAUSE"), HasSubstr("did you mean \"TOPIC.PAUSE\"?"));
  EXPECT_THAT(message("TOPIC.DELETE"), HasSubstr("did you mean \"TOPIC.DROP\"?"));
  EXPECT_THAT(message("job.del"), HasSubstr("did you mean \"JOB.CANCEL\"?"));
  EXPECT_THAT(message("WAIT"), HasSubstr("COMMAND LIST"));
  EXPECT_THAT(message("monitor"), AllOf(HasSubstr("see INFO"), Not(HasSubstr("pub/sub"))));
  EXPECT_THAT(message("subscribe"), HasSubstr("no pub/sub; wait for jobs with JOB.RESERVE topic WAIT ms"));
  EXPECT_THAT(message("MULTI"), HasSubstr("no transactions"));
  EXPECT_THAT(message("evalsha"), HasSubstr("no scripts"));
  EXPECT_THAT(message("ZRANGEBYSCORE"), HasSubstr("COMMAND LIST"));
  EXPECT_LT(message(std::string(1 << 20, 'x')).size(), 1000U);
}

}  // namespace
}  // namespace tocsin::resp
