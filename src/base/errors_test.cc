#include "base/errors.h"

#include <set>

#include <gtest/gtest.h>

#include "base/result.h"

namespace tocsin {
namespace {

TEST(Errors, EveryCodeHasARowForAllThreeWires) {
  std::set<std::string_view> names;
  for (const ErrorRow& row : ErrorTable()) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(&RowOf(row.code), &row);
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_GE(row.http, 400);
    EXPECT_LE(row.http, 599);
    EXPECT_FALSE(row.resp.empty());
    EXPECT_EQ(row.resp.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), std::string_view::npos);
    EXPECT_FALSE(row.grpc.empty());
    EXPECT_FALSE(row.doc.empty());
    EXPECT_EQ(row.doc.back(), '.');
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Code::kInternal) + 1);
}

Status Inner() { return FailField(Code::kTooLarge, "payload", "payload has {} bytes", 9); }

Result<int> Outer() {
  TOCSIN_TRY(Inner());
  return 1;
}

TEST(Errors, TryHandsTheErrorOnAndPrefixedAddsToIt) {
  auto result = Outer();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kTooLarge);
  EXPECT_EQ(result.error().field, "payload");
  EXPECT_EQ(std::move(result.error()).Prefixed("job 3").message, "job 3: payload has 9 bytes");
}

}  // namespace
}  // namespace tocsin
