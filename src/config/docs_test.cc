#include "config/docs.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "config/load.h"

namespace tocsin {
namespace {

std::string Committed(const std::string& path) {
  std::ifstream file(TOCSIN_SOURCE_DIR "/" + path);
  EXPECT_TRUE(file.is_open()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

constexpr const char* kRemedy = "run: make docs";

TEST(Docs, CommittedPagesAreWhatTheTablesSay) {
  EXPECT_EQ(Committed("docs/configuration.md"), ConfigurationMarkdown()) << kRemedy;
  EXPECT_EQ(Committed("docs/errors.md"), ErrorsMarkdown()) << kRemedy;
  EXPECT_EQ(Committed("deploy/tocsin.toml"), SampleToml()) << kRemedy;
  EXPECT_EQ(Committed("deploy/tocsind.8"), ManPage()) << kRemedy;
}

TEST(Docs, TheSampleWithEveryLineInUseGivesTheDefaults) {
  std::istringstream sample(SampleToml());
  std::string in_use;
  for (std::string line; std::getline(sample, line);) {
    const bool setting = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    in_use += (setting ? line.substr(1) : line) + "\n";
  }
  EXPECT_THAT(in_use, testing::HasSubstr("\nlisten = \"127.0.0.1:7420\"\n"));
  Inputs inputs{.arguments = {"--config-check"}, .read_file = [&](const std::string&) { return in_use; }};
  const std::string plain = LoadConfig(inputs).value().text;
  inputs.arguments = {"--config-check", "--config", "x"};
  const Result<Loaded> loaded = LoadConfig(inputs);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto without_origins = [](const std::string& text) {
    std::istringstream lines(text);
    std::string values;
    for (std::string line; std::getline(lines, line);) values += line.substr(0, line.find('#')) + "\n";
    return values;
  };
  EXPECT_EQ(without_origins(loaded->text), without_origins(plain));
}

}  // namespace
}  // namespace tocsin
