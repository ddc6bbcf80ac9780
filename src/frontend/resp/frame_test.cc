#include "frontend/resp/frame.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace tocsin::resp {
namespace {

constexpr std::string_view kPrefix = "protocol: ";

using Step = FrameParser::Step;
using testing::ElementsAre;
using testing::HasSubstr;

/// All that a parser made of some bytes.
struct Outcome {
  std::vector<std::vector<std::string>> commands;
  Step end = Step::kMore;  // why it stopped
  std::string problem;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

void PrintTo(const Outcome& outcome, std::ostream* out) {
  for (const auto& command : outcome.commands) *out << testing::PrintToString(command) << ' ';
  *out << "then " << static_cast<int>(outcome.end) << ' ' << outcome.problem;
}

/// Hands the bytes over as a connection does: `first` of them, and then `step` more each time. What was handed over
/// moves in memory, as it does in a buffer that grows.
Outcome Read(std::string_view bytes, size_t first, size_t step, const FrameLimits& limits = {}) {
  FrameParser parser;
  Outcome outcome;
  size_t begin = 0;
  for (size_t end = std::min(first, bytes.size());; end = std::min(end + step, bytes.size())) {
    const std::string here(bytes.substr(begin, end - begin));
    std::string_view left = here;
    while (!left.empty()) {
      outcome.end = parser.Parse(left, limits);
      if (outcome.end != Step::kFrame) break;
      outcome.commands.emplace_back(parser.args().begin(), parser.args().end());
      begin += parser.size();
      left.remove_prefix(parser.size());
      outcome.end = Step::kMore;
    }
    if (outcome.end == Step::kBad) outcome.problem = parser.problem().message.substr(kPrefix.size());
    if (outcome.end != Step::kMore || end == bytes.size()) return outcome;
    EXPECT_TRUE(left.empty() || parser.needed() > left.size());
  }
}

/// In one piece, byte by byte, and cut at every place: the same.
Outcome ReadAll(std::string_view bytes, const FrameLimits& limits = {}) {
  const Outcome whole = Read(bytes, bytes.size(), 1, limits);
  EXPECT_EQ(Read(bytes, 1, 1, limits), whole);
  for (size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_EQ(Read(bytes, cut, bytes.size(), limits), whole);
  return whole;
}

std::string Problem(std::string_view bytes, const FrameLimits& limits = {}) {
  const Outcome outcome = ReadAll(bytes, limits);
  EXPECT_EQ(outcome.end, Step::kBad);
  return outcome.problem;
}

TEST(FrameTest, ArraysOfBulkStrings) {
  const Outcome read = ReadAll("*1\r\n$4\r\nPING\r\n*3\r\n$1\r\na\r\n$0\r\n\r\n$4\r\n\r\n\r\n\r\n*2\r\n$1\r\nb");
  EXPECT_THAT(read.commands, ElementsAre(ElementsAre("PING"), ElementsAre("a", "", "\r\n\r\n")));
  EXPECT_EQ(read.end, Step::kMore);
}

TEST(FrameTest, BytesOfArgumentsMeanNothing) {
  const std::string all = [] {
    std::string bytes;
    for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
    return bytes;
  }();
  const Outcome read = ReadAll(fmt::format("*2\r\n$256\r\n{}\r\n$3\r\n*1\r\r\n", all));
  EXPECT_THAT(read.commands, ElementsAre(ElementsAre(all, "*1\r")));
}

TEST(FrameTest, AnEmptyArrayOrLineIsNoCommand) {
  const Outcome read = ReadAll("*0\r\n*-1\r\n\r\n\n  \t\r\nPING\r\n");
  EXPECT_THAT(read.commands, ElementsAre(ElementsAre(), ElementsAre(), ElementsAre(), ElementsAre(), ElementsAre(),
                                         ElementsAre("PING")));
}

TEST(FrameTest, LinesOfText) {
  const Outcome read = ReadAll("PING\r\n  job.submit  t\thello \n*1\r\n$4\r\nPING\r\nQUIT\n");
  EXPECT_THAT(read.commands, ElementsAre(ElementsAre("PING"), ElementsAre("job.submit", "t", "hello"),
                                         ElementsAre("PING"), ElementsAre("QUIT")));
}

TEST(FrameTest, QuotesHoldBlanksTogether) {
  const Outcome read = ReadAll("a \"b c\" 'd \"e' \"f \\\" \\\\ g\" '' \"\" '\\'\n");
  EXPECT_THAT(read.commands, ElementsAre(ElementsAre("a", "b c", "d \"e", "f \" \\ g", "", "", "\\")));
  EXPECT_THAT(Problem("a \"b c\r\n"), HasSubstr("quote"));
  EXPECT_THAT(Problem("a '\r\n"), HasSubstr("quote"));
  EXPECT_THAT(Problem("a \"b\\\"\r\n"), HasSubstr("quote"));
}

TEST(FrameTest, ALineIsKeptWhereverItsBytesAre) {
  FrameParser parser;
  ASSERT_EQ(parser.Parse("PING \"a b\"\n", {}), Step::kFrame);
  const auto text = parser.text();
  ASSERT_NE(text, nullptr);
  const std::string_view argument = parser.args()[1];
  EXPECT_GE(argument.data(), text->data());
  EXPECT_LE(argument.data() + argument.size(), text->data() + text->size());
  ASSERT_EQ(parser.Parse("*1\r\n$4\r\nPING\r\n", {}), Step::kFrame);
  EXPECT_EQ(parser.text(), nullptr);
  EXPECT_EQ(argument, "a b");
}

TEST(FrameTest, ArgumentsAreViewsOfTheCallersBytes) {
  const std::string bytes = "*2\r\n$4\r\nPING\r\n$2\r\nhi\r\nrest";
  FrameParser parser;
  ASSERT_EQ(parser.Parse(bytes, {}), Step::kFrame);
  EXPECT_EQ(parser.args()[1].data(), bytes.data() + bytes.find("hi"));
  EXPECT_EQ(parser.size(), bytes.size() - 4);
}

TEST(FrameTest, HttpIsRecognised) {
  for (const std::string_view line : {"GET / HTTP/1.1\r\n", "POST /v1/topics HTTP/1.0\r\n", "PRI * HTTP/2.0\r\n",
                                      "OPTIONS * HTTP/1.1\n", "Host: localhost\r\n", "host: x\n"}) {
    EXPECT_EQ(ReadAll(line).end, Step::kHttp) << line;
  }
  for (const std::string_view line : {"GET key\r\n", "PING HTTP/1.1\r\n", "GET\r\n", "Hosts: x\r\n"}) {
    EXPECT_EQ(ReadAll(line).end, Step::kMore) << line;
  }
  EXPECT_EQ(ReadAll("*1\r\n$4\r\nPING\r\nGET / HTTP/1.1\r\nPING\r\n").commands.size(), 1U);
}

TEST(FrameTest, ControlBytesBeginNoCommand) {
  EXPECT_THAT(Problem(std::string_view("\0\0\0", 3)), HasSubstr("byte 0"));
  EXPECT_THAT(Problem("\x17"), HasSubstr("byte 23"));
}

TEST(FrameTest, TlsIsRecognised) { EXPECT_EQ(ReadAll("\x16\x03\x01\x02").end, Step::kTls); }

TEST(FrameTest, ALengthThatIsNoNumber) {
  for (const std::string_view bytes :
       {"*\r\n", "*x\r\n", "*1x\r\n", "*1\n", "*1\rx", "*--1\r\n", "*+1\r\n", "* 1\r\n", "*1\r\n$\r\n",
        "*1\r\n$1.0\r\n", "*1\r\n$0x1\r\n", "*1\r\n$1\n", "*1\r\n$-\r\n"}) {
    EXPECT_THAT(Problem(bytes), HasSubstr("not a number")) << bytes;
  }
}

TEST(FrameTest, ALengthOfTooManyDigits) {
  EXPECT_THAT(Problem("*99999999999999999999\r\n"), HasSubstr("number of arguments has too many digits"));
  EXPECT_THAT(Problem("*-99999999999999999999\r\n"), HasSubstr("too many digits"));
  EXPECT_THAT(Problem("*1\r\n$18446744073709551616\r\n"), HasSubstr("length of an argument has too many digits"));
  EXPECT_THAT(Problem(std::string("*") + std::string(1000, '0')), HasSubstr("too many digits"));
}

TEST(FrameTest, ALengthThatIsNegative) {
  EXPECT_THAT(Problem("*1\r\n$-1\r\n"), HasSubstr("negative"));
  EXPECT_THAT(Problem("*1\r\n$-999999999999999999\r\n"), HasSubstr("negative"));
}

TEST(FrameTest, AnArgumentWithoutItsHeadOrItsEnd) {
  EXPECT_THAT(Problem("*1\r\n+PING\r\n"), HasSubstr("expected '$' before an argument, got '+'"));
  EXPECT_THAT(Problem("*2\r\n$1\r\na\r\n\r\n"), HasSubstr("got byte 13"));
  EXPECT_THAT(Problem("*1\r\n$2\r\nabc\r\n"), HasSubstr("longer than its length"));
  EXPECT_THAT(Problem("*1\r\n$2\r\nab\r\r"), HasSubstr("longer than its length"));
}

TEST(FrameTest, TooManyArgumentsAreRefusedBeforeTheyCome) {
  const FrameLimits limits{.bytes = 1000, .arguments = 3};
  EXPECT_EQ(ReadAll("*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", limits).commands.size(), 1U);
  EXPECT_EQ(Problem("*4\r\n", limits), "a command of 4 arguments: the most is 3");
  EXPECT_EQ(Problem("*999999999999999999\r\n", limits), "a command of 999999999999999999 arguments: the most is 3");
  EXPECT_EQ(ReadAll("a b c\n", limits).commands.size(), 1U);
  EXPECT_EQ(Problem("a b c d\n", limits), "a command of 4 arguments: the most is 3");
}

TEST(FrameTest, TooManyBytesAreRefusedBeforeTheyCome) {
  const std::string head = "*2\r\n$1\r\na\r\n$";
  const FrameLimits limits{.bytes = head.size() + 4 + 10 + 2};
  EXPECT_EQ(ReadAll(head + "10\r\n0123456789\r\n", limits).commands.size(), 1U);
  EXPECT_EQ(Problem(head + "11\r\n", limits), fmt::format("a command of more than {} bytes", limits.bytes));
  EXPECT_THAT(Problem(head + "999999999999999999\r\n", limits), HasSubstr("a command of more than"));
  // Many small ones add up.
  std::string many = "*100\r\n";
  for (int i = 0; i < 100; ++i) many += "$0\r\n\r\n";
  EXPECT_THAT(Problem(many, {.bytes = 300}), HasSubstr("a command of more than 300 bytes"));
}

TEST(FrameTest, ALineHasALimitOfItsOwn) {
  const auto read = [](size_t bytes, const FrameLimits& limits) {
    const std::string line = std::string(bytes, 'x') + "\n";
    const Outcome whole = Read(line, line.size(), 1, limits);
    EXPECT_EQ(Read(line, line.size() - 1, 1, limits), whole);
    EXPECT_EQ(Read(line, 1, 1000, limits), whole);
    return whole;
  };
  EXPECT_EQ(read(kInlineMax, {}).commands.size(), 1U);
  EXPECT_EQ(read(kInlineMax + 1, {}).problem, "a line of more than 65536 bytes");
  EXPECT_EQ(read(10, {.bytes = 10}).commands.size(), 1U);
  EXPECT_EQ(read(11, {.bytes = 10}).problem, "a line of more than 10 bytes");
  // Whether or not its end is there.
  FrameParser parser;
  EXPECT_EQ(parser.Parse("12345678901", {.bytes = 10}), Step::kBad);
}

TEST(FrameTest, SaysHowManyBytesItNeeds) {
  FrameParser parser;
  EXPECT_EQ(parser.Parse("", {}), Step::kMore);
  EXPECT_EQ(parser.Parse("*2\r\n$4\r\nPI", {}), Step::kMore);
  EXPECT_EQ(parser.needed(), std::string_view("*2\r\n$4\r\nPING\r\n").size());
  EXPECT_EQ(parser.Parse("*2\r\n$4\r\nPING\r\n$10", {}), Step::kMore);
  EXPECT_EQ(parser.needed(), std::string_view("*2\r\n$4\r\nPING\r\n$10").size() + 1);
  EXPECT_EQ(parser.Parse("*2\r\n$4\r\nPING\r\n$1000000\r\n", {}), Step::kMore);
  EXPECT_EQ(parser.needed(), std::string_view("*2\r\n$4\r\nPING\r\n$1000000\r\n").size() + 1'000'002);
}

TEST(FrameTest, TrimKeepsACommandThatIsUnderWay) {
  std::string bytes = "*500\r\n";
  for (int i = 0; i < 500; ++i) bytes += "$1\r\nx\r\n";
  FrameParser parser;
  ASSERT_EQ(parser.Parse(bytes.substr(0, bytes.size() - 1), {}), Step::kMore);
  parser.Trim();
  ASSERT_EQ(parser.Parse(bytes, {}), Step::kFrame);
  EXPECT_EQ(parser.args().size(), 500U);
  parser.Trim();
  EXPECT_TRUE(parser.args().empty());
  ASSERT_EQ(parser.Parse(bytes, {}), Step::kFrame);
  EXPECT_EQ(parser.args().size(), 500U);
}

TEST(FrameTest, GoesOnAfterSomethingBad) {
  FrameParser parser;
  ASSERT_EQ(parser.Parse("*1\r\n$x", {}), Step::kBad);
  ASSERT_EQ(parser.Parse("PING\n", {}), Step::kFrame);
  EXPECT_THAT(parser.args(), ElementsAre("PING"));
}

}  // namespace
}  // namespace tocsin::resp
