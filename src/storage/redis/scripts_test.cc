#include "storage/redis/scripts.h"

#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace tocsin::redis {
namespace {

// Redis would find a name that nothing defines only when that line runs.
TEST(RedisScripts, EveryConstantHasAValue) {
  ASSERT_GT(LuaFiles().size(), 20U);
  for (const LuaFile& file : LuaFiles()) {
    const std::string source = std::regex_replace(LoadScript(file.name).source(), std::regex("'[^']*'|--.*"), "");
    const std::regex capitals("\\b[A-Z][A-Z0-9_]+\\b");
    for (std::sregex_iterator at(source.begin(), source.end(), capitals), end; at != end; ++at) {
      EXPECT_TRUE(at->str() == "KEYS" || at->str() == "ARGV") << file.name << ": " << at->str();
    }
  }
}

TEST(RedisScripts, FilesAreIncluded) {
  const std::string source = LoadScript("put_topic").source();
  EXPECT_TRUE(source.starts_with("-- tocsin put_topic\n"));
  EXPECT_NE(source.find("local topics, version"), std::string::npos);
  EXPECT_EQ(source.find("@include"), std::string::npos);
}

}  // namespace
}  // namespace tocsin::redis
