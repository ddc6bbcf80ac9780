#include "cli/docs/docs.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "cli/arguments.h"

namespace tocsin::cli {
namespace {

std::string Committed(std::string_view path) {
  std::ifstream file(TOCSIN_SOURCE_DIR "/" + std::string(path));
  EXPECT_TRUE(file.is_open()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Docs, CommittedPagesAreWhatTheTableSays) {
  for (const Page& page : Pages()) {
    const bool same = Committed(page.path) == page.text(Groups(), GlobalFlags());
    EXPECT_TRUE(same) << page.path << " differs: run: make docs";
  }
}

TEST(Commands, EveryRowIsCompleteAndHasItsOwnName) {
  std::set<std::string_view> names;
  for (const Group& group : Groups()) {
    for (const Command& command : group.commands) {
      EXPECT_TRUE(names.insert(command.name).second) << command.name << " is there twice";
      EXPECT_NE(command.run, nullptr) << command.name;
      EXPECT_FALSE(command.summary.empty() || command.summary.ends_with('.')) << command.name;
      EXPECT_FALSE(command.examples.empty()) << command.name << " has no example";
      for (const Example& example : command.examples)
        EXPECT_TRUE(example.line.starts_with(command.name)) << example.line;
    }
  }
}

TEST(Commands, EveryFlagHasATextAndMeansTheSameEverywhere) {
  std::map<std::string_view, bool> takes_value;  // completions rely on it
  const auto check = [&](const Flag& flag) {
    EXPECT_TRUE(flag.doc.ends_with('.')) << flag.name;
    EXPECT_EQ(ValueName(flag).empty(), flag.kind == Kind::kSwitch) << flag.name;
    EXPECT_EQ(flag.choices.empty(), flag.kind != Kind::kChoice) << flag.name;
    const bool value = flag.kind != Kind::kSwitch;
    EXPECT_EQ(takes_value.try_emplace(flag.name, value).first->second, value) << flag.name;
  };
  std::set<std::string_view> global;
  for (const Flag& flag : GlobalFlags()) {
    check(flag);
    global.insert(flag.name);
  }
  for (const Group& group : Groups()) {
    for (const Command& command : group.commands) {
      for (const Flag& flag : command.flags) {
        check(flag);
        EXPECT_FALSE(global.contains(flag.name)) << command.name << " --" << flag.name << " is a flag of every command";
      }
    }
  }
}

TEST(Commands, OnlyTheLastPositionalRepeatsOrIsOptional) {
  for (const Group& group : Groups()) {
    for (const Command& command : group.commands) {
      for (size_t i = 0; i + 1 < command.positionals.size(); ++i) {
        EXPECT_TRUE(command.positionals[i].required && !command.positionals[i].repeated) << command.name;
      }
    }
  }
}

}  // namespace
}  // namespace tocsin::cli
