#include "clients/redis/context.h"

#include <fstream>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

namespace tocsin::redis {
namespace {

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The end-to-end test that compares the page with /metrics runs a server without Redis.
TEST(Figures, AreExplainedToOperators) {
  metrics::Registry registry;
  Figures figures(registry);
  figures.RecordScript(Script("claim", "return 1"), std::chrono::milliseconds(1));
  const std::string page = ReadFile(TOCSIN_SOURCE_DIR "/docs/metrics.md");
  const std::string text = registry.RenderPrometheus();
  const std::regex type("# TYPE (tocsin_redis_\\w+) (\\w+)\n");
  size_t families = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), type), end; it != end; ++it, ++families) {
    const std::string row = fmt::format("\n| `{}` | {} |", (*it)[1].str(), (*it)[2].str());
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
  EXPECT_EQ(families, 5);
}

TEST(Figures, OfScriptsAreKeptByName) {
  metrics::Registry registry;
  Figures figures(registry);
  const Script claim("claim", "return 1");
  figures.RecordScript(claim, std::chrono::milliseconds(1));
  figures.RecordScript(claim, std::chrono::milliseconds(1));
  figures.RecordScript(Script("submit", "return 2"), std::chrono::milliseconds(1));
  const std::string text = registry.RenderPrometheus();
  EXPECT_NE(text.find("tocsin_redis_script_seconds_count{script=\"claim\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("tocsin_redis_script_seconds_count{script=\"submit\"} 1\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace tocsin::redis
