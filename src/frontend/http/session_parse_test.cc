#include <latch>

#include <gmock/gmock.h>

#include "frontend/http/session_test_site.h"

namespace tocsin::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class SessionParseTest : public TestSite {
 protected:
  static std::string Submit(size_t jobs, std::string_view payload) {
    std::string body = R"({"jobs":[)";
    for (size_t i = 0; i < jobs; ++i) body += fmt::format(R"({}{{"payload":"{}"}})", i > 0 ? "," : "", payload);
    body += "]}";
    return fmt::format("POST /v1/topics/t/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
  }
};

TEST_F(SessionParseTest, ALargeBodyDoesNotWaitForOneThatIsMuchLarger) {
  std::latch both_are_here(1);
  std::latch quick_is_answered(1);
  server_->helper().Run(loop_, [&] { both_are_here.wait(); }, [](const Status&) {});
  auto slow = Connect();
  auto quick = Connect();
  Send(slow, Submit(1'200, std::string(1'000, 'x')));  // takes five steps
  Send(quick, Submit(300, std::string(1'000, 'x')));   // takes two
  server_->helper().RunSteps(
      loop_,
      [&, steps = 0]() mutable {
        if (++steps < 2) return false;
        quick_is_answered.wait();
        return true;
      },
      [](const Status&) {});
  both_are_here.count_down();
  EXPECT_THAT(ReadUntil(quick, "}]}"), StartsWith("HTTP/1.1 201 "));
  slow.Take();
  EXPECT_EQ(slow.got, "");
  quick_is_answered.count_down();
  EXPECT_THAT(ReadUntil(slow, "}]}"), StartsWith("HTTP/1.1 201 "));
}

TEST_F(SessionParseTest, TooManyJobsAreRefusedWithTheirField) {
  auto client = Connect();
  Send(client, Submit(100'000, "x"));
  EXPECT_THAT(ReadUntil(client, "}}"), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr(R"("field":"jobs")"),
                                             HasSubstr("jobs has more than 10000 elements: the range is 1 to 10000")));
  Send(client, "GET /small HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(ReadUntil(client, "small"), StartsWith("HTTP/1.1 200 ")) << "the connection goes on";
}

TEST_F(SessionParseTest, AClientMayGoWhileItsBodyIsParsed) {
  {
    auto client = Connect();
    Send(client, Submit(3'000, std::string(1'000, 'x')));
  }
  RunWhile([&] { return Metric("tocsin_http_connections") > 0 || budget_.bytes() > 0; });
  auto next = Connect();
  Send(next, Submit(300, std::string(1'000, 'x')));
  EXPECT_THAT(ReadUntil(next, "}]}"), StartsWith("HTTP/1.1 201 "));
}

}  // namespace
}  // namespace tocsin::http
