#include "base/text_search.h"

#include <chrono>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(TextSearch, FindsWhatStringViewFinds) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    // Few letters, so that parts repeat themselves and are found often.
    const auto make = [&](size_t size_max) {
      std::string text(random() % (size_max + 1), 'a');
      for (char& c : text) c = static_cast<char>('a' + random() % (1 + round % 3));
      return text;
    };
    const std::string part = make(12);
    TextSearch search(part);
    for (int i = 0; i < 3; ++i) {
      const std::string text = make(round % 10 == 0 ? 400 : 40);
      ASSERT_EQ(search.IsIn(text), std::string_view(text).contains(part)) << part << " in " << text;
    }
  }
}

TEST(TextSearch, FindsAnyBytes) {
  const std::string part("\0\xFF\n", 3);
  TextSearch search(part);
  EXPECT_TRUE(search.IsIn(std::string("abc\0\xFF\n", 6)));
  EXPECT_FALSE(search.IsIn(std::string("abc\0\xFFx\n", 7)));
  EXPECT_FALSE(search.IsIn(""));
  EXPECT_TRUE(TextSearch("").IsIn(""));
}

TEST(TextSearch, TakesLinearTimeForTheWorstParts) {
  const std::string text(1 << 20, 'a');
  const std::string many(500, 'a');
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) {
    for (const std::string& part : {many + "b", "b" + many, many + "b" + many})
      EXPECT_FALSE(TextSearch(part).IsIn(text));
  }
  // A quadratic search takes minutes here if the build is not optimized.
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
}

}  // namespace
}  // namespace tocsin
