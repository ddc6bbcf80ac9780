#include "cli/text/output.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace tocsin::cli {
namespace {

using namespace std::string_view_literals;

/// What `print` writes.
template <class Print>
std::string Written(OutputOptions options, Print print) {
  std::FILE* const file = std::tmpfile();
  Output out(file, options);
  print(out);
  EXPECT_TRUE(out.Flush());
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

TEST(Printable, LetsNothingSteerATerminal) {
  EXPECT_EQ(Printable("plain, grüße"), "plain, grüße");
  EXPECT_EQ(Printable("\x1b[2Jx"), "\\x1b[2Jx");
  EXPECT_EQ(Printable("a\nb\tc\rd"), "a\\nb\\tc\\x0dd");
  EXPECT_EQ(Printable("\0\x7f"sv), "\\x00\\x7f");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "2J"),
            "\\x9b2J");
  EXPECT_EQ(Printable("\xFF\xC3"), "\\xff\\xc3");
  EXPECT_EQ(Printable("a\u202eb\u2066c\u2070"), "a\\u202eb\\u2066c\u2070");
}

TEST(Table, AlignsColumnsByTheirWidestCell) {
  Table table({"NAME", ">COUNT", "NOTE"});
  table.Row({"grüße", "7", "x"});
  table.Row({"a", "12345678", ""});
  EXPECT_EQ(Written({}, [&](Output& out) { table.Print(out); }),
            "NAME      COUNT  NOTE\n"
            "grüße         7  x\n"
            "a      12345678\n");
}

TEST(Table, IsCutAtTheWidthOfATerminal) {
  Table table({"NAME", "NOTE"});
  table.Row({"a", "grüße aus der ferne"});
  EXPECT_EQ(Written({.terminal = true, .width = 10}, [&](Output& out) { table.Print(out); }),
            "NAME  NOTE\na     grüß\n");
}

TEST(Table, ALongCellLeavesRoomForTheOthers) {
  Table table({"ID", "KEY", "PAYLOAD"});
  table.Row({std::string(200, 'i'), "k", "the payload"});
  EXPECT_EQ(Written({.terminal = true, .width = 30}, [&](Output& out) { table.Print(out); }),
            "ID            KEY  PAYLOAD\n"
            "iiiiiiiiiii…  k    the payload\n");
}

TEST(Output, JsonSteersNoTerminalAndMeansTheSame) {
  const boost::json::value value =
      boost::json::parse("{\"a\\u007f\":[\"\\u009b2J\\u202e\",0.5,0.0,-3,null,true,{}],\"b\":{\"c\":\"grüße\"}}");
  const std::string text = Written({}, [&](Output& out) { out.Json(value); });
  EXPECT_EQ(text, "{\"a\\u007f\":[\"\\u009b2J\\u202e\",0.5,0,-3,null,true,{}],\"b\":{\"c\":\"grüße\"}}\n");
}

TEST(Output, PaintsOnlyWhereColoursAreOn) {
  EXPECT_EQ(Output(stdout, {}).Paint(Colour::kRed, "x"), "x");
  EXPECT_EQ(Output(stdout, {.colours = true}).Paint(Colour::kRed, "x"), "\x1b[31mx\x1b[0m");
}

TEST(Output, AFullDiskIsNoSuccess) {
  std::FILE* const full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  Output out(full, {});
  out.Write("x");
  EXPECT_EQ(out.Flush().error().message, "cannot write the output: No space left on device");
  out.Write(std::string(1 << 20, 'x'));
  EXPECT_EQ(out.Flush().error().message, "cannot write the output: No space left on device");
  std::fclose(full);
}

}  // namespace
}  // namespace tocsin::cli
