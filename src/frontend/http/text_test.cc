#include <gtest/gtest.h>

#include "frontend/http/json_writer.h"

namespace tocsin::http {
namespace {

using namespace std::string_view_literals;

std::string Quoted(std::string_view text) {
  std::string out;
  AppendString(out, text);
  return out;
}

TEST(AppendString, EscapesWhatJsonForbids) {
  EXPECT_EQ(Quoted("plain"), "\"plain\"");
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted("a\"b\\c\nd\te\rf"), R"("a\"b\\c\nd\te\rf")");
  EXPECT_EQ(Quoted("\0\x1f\x7f"sv), R"("\u0000\u001f\u007f")");
  EXPECT_EQ(Quoted("grüße"), "\"grüße\"");
}

}  // namespace
}  // namespace tocsin::http
