#include "server/tls_guard.h"

#include <gmock/gmock.h>

#include "net/test_certificates.h"
#include "server/server_test_site.h"

namespace tocsin {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr long kDay = 86'400;

class TlsGuardTest : public ServerTest {
 protected:
  void SetUp() override {
    SetLogLevel(LogLevel::kOff);
    Write(20 * kDay);
  }

  /// A new certificate, for so many seconds.
  void Write(long seconds) {
    const auto issued = authority_.Issue("server", seconds);
    folder_.Write("server.crt", issued.certificate, 0644);
    folder_.Write("server.key", issued.key);
  }
  Config Options(std::vector<std::string> more = {}) {
    more.push_back("--tls-certificate=" + folder_.At("server.crt"));
    more.push_back("--tls-key=" + folder_.At("server.key"));
    return ConfigWith(std::move(more));
  }
  std::unique_ptr<TlsGuard> Open() { return TlsGuard::Open(io_, Options(), metrics_).value(); }
  /// Sends a hangup, and runs until the guard has seen it.
  void HangUp() {
    boost::asio::signal_set hangup(io_, SIGHUP);
    bool came = false;
    hangup.async_wait([&came](const boost::system::error_code&, int) { came = true; });
    ::raise(SIGHUP);
    while (!came) io_.run_one();
    io_.poll();
  }
  /// What the log says meanwhile.
  template <class Work>
  static std::string Logged(Work work) {
    SetLogLevel(LogLevel::kWarn);
    testing::internal::CaptureStderr();
    work();
    SetLogLevel(LogLevel::kOff);
    return testing::internal::GetCapturedStderr();
  }

  const net::TestCertificates authority_;
  boost::asio::io_context io_;
  metrics::Registry metrics_;
};

TEST_F(TlsGuardTest, WithoutACertificateThereIsNone) {
  EXPECT_EQ(TlsGuard::Open(io_, ConfigWith({}), metrics_).value(), nullptr);
}

TEST_F(TlsGuardTest, EachDoorMayStayInClearText) {
  EXPECT_EQ(Open()->tls().Names(), "http,resp");
  EXPECT_EQ(TlsGuard::Open(io_, Options({"--http-tls=off"}), metrics_).value()->tls().Names(), "resp");
  EXPECT_EQ(TlsGuard::Open(io_, Options({"--resp-tls=off"}), metrics_).value()->tls().Names(), "http");
}

TEST_F(TlsGuardTest, AKeyThatOthersCanReadIsRefused) {
  ASSERT_EQ(::chmod(folder_.At("server.key").c_str(), 0640), 0);
  const auto refused = TlsGuard::Open(io_, Options(), metrics_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("tls.key: " + folder_.At("server.key")), HasSubstr("chmod 600")));
}

TEST_F(TlsGuardTest, FilesThatChangeAreReadAgain) {
  const auto guard = Open();
  const auto before = guard->tls().http;
  const net::ServerTls* handed_on = nullptr;
  guard->Start([&](const DoorsTls& tls) { handed_on = tls.http.get(); });
  Write(30 * kDay);
  while (handed_on == nullptr) io_.run_one();
  EXPECT_EQ(handed_on, guard->tls().http.get());
  EXPECT_GT(guard->tls().http->expires(), before->expires());
  EXPECT_THAT(metrics_.RenderPrometheus(), HasSubstr("\ntocsin_tls_certificate_expires_seconds "));
}

TEST_F(TlsGuardTest, ACertificateThatCannotBeUsedReplacesNone) {
  const auto guard = Open();
  const auto before = guard->tls().http;
  size_t handed_on = 0;
  guard->Start([&](const DoorsTls&) { ++handed_on; });
  folder_.Write("server.key", authority_.Issue("other").key);
  EXPECT_THAT(Logged([&] { HangUp(); }), AllOf(HasSubstr("is not the key"), HasSubstr("read before stays in force")));
  Write(-60);
  EXPECT_THAT(Logged([&] { HangUp(); }), HasSubstr("expired at"));
  EXPECT_EQ(handed_on, 0U);
  EXPECT_EQ(guard->tls().http, before);
  Write(20 * kDay);
  HangUp();
  EXPECT_EQ(handed_on, 1U);
}

TEST_F(TlsGuardTest, WarnsTwoWeeksBeforeTheEnd) {
  EXPECT_THAT(Logged([&] { Open(); }), IsEmpty());
  Write(10 * kDay + 60);
  EXPECT_THAT(Logged([&] { Open(); }), HasSubstr("expires in 10 days"));
}

TEST_F(TlsGuardTest, WarnsOfDoorsInClearTextUnlessTheyAreMeant) {
  const auto warned = [](const Config& config, bool loopback) {
    return Logged([&] { WarnOfClearText(config, loopback, loopback); });
  };
  EXPECT_THAT(warned(ConfigWith({}), false), AllOf(HasSubstr("http.listen"), HasSubstr("resp.tls = off")));
  EXPECT_THAT(warned(ConfigWith({}), true), IsEmpty());
  EXPECT_THAT(warned(Options(), false), IsEmpty());
  EXPECT_THAT(warned(ConfigWith({"--http-tls=off"}), false),
              AllOf(HasSubstr("resp.listen"), Not(HasSubstr("http.listen"))));
}

}  // namespace
}  // namespace tocsin
