#include <gmock/gmock.h>

#include "frontend/http/session_test_site.h"

namespace tocsin::http {
namespace {

using testing::HasSubstr;

class SessionStopTest : public TestSite {
 protected:
  void Stop() {
    loop_.Post([&] {
      service_.Stop(loop_, [&] { stopped_ = true; });
      server_->Drain([&] { drained_ = true; });
    });
    RunWhile([&] { return !stopped_; });
  }

  bool stopped_ = false;
  bool drained_ = false;
};

// Other nodes may share the store, and go on with it.
TEST_F(SessionStopTest, JobsInAnswersThatNobodyReadsAreReleased) {
  const auto figures = [&] { return store_.Topics().front(); };
  auto other = Connect();
  const std::string job = R"({"max_attempts":1,"payload":")" + std::string(900'000, 'x') + "\"}";
  Send(other,
       fmt::format("POST /v1/topics/t/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", job.size(), job));
  EXPECT_THAT(ReadUntil(other, "}]}"), HasSubstr("accepted"));
  client_buffer_bytes = 4096;
  auto slow = Connect();
  Send(slow, "POST /v1/topics/t/reserve HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  RunWhile([&] { return figures().leased == 0; });
  Stop();
  EXPECT_FALSE(drained_) << "a client has some time to read its last answer";
  Pass(Millis(6'000));
  RunWhile([&] { return !drained_; });
  bool quiet = false;
  loop_.Post([&] { service_.AwaitReleases(loop_, [&] { quiet = true; }); });
  RunWhile([&] { return !quiet; });
  EXPECT_EQ(figures().leased, 0U);
  EXPECT_EQ(figures().dead, 0U) << "its only attempt was not used up";
}

TEST_F(SessionStopTest, AnAnswerThatIsReadIsSentAsAWhole) {
  large_bytes = 3 << 20;
  client_buffer_bytes = 4096;
  auto client = Connect();
  Send(client, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  Settle();
  Stop();
  EXPECT_GT(ReadToEnd(client).size(), large_bytes);
  RunWhile([&] { return !drained_; });
  large_bytes = 1024;
}

}  // namespace
}  // namespace tocsin::http
