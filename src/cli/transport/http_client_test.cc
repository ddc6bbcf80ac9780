#include "cli/transport/http_client.h"

#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>

#include "base/clock.h"

namespace tocsin::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr Millis kLimit{20'000};
constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

/// Plays one connection after the other, each by its own script on one thread.
class ScriptedServer {
 public:
  using Script = std::function<void(ScriptedServer&)>;

  explicit ScriptedServer(std::vector<Script> scripts)
      : acceptor_(io_, {boost::asio::ip::make_address("127.0.0.1"), 0}), thread_([this, scripts = std::move(scripts)] {
          for (const Script& script : scripts) {
            socket_.emplace(acceptor_.accept());
            script(*this);
            socket_.reset();
          }
        }) {}
  ~ScriptedServer() { thread_.join(); }

  Endpoint endpoint() const {
    return ParseEndpoint(fmt::format("http://127.0.0.1:{}", acceptor_.local_endpoint().port())).value();
  }

  /// What the client sent, up to `end`, or until it closed.
  std::string ReadUntil(std::string_view end) {
    boost::asio::streambuf buffer;
    boost::system::error_code ignored;
    boost::asio::read_until(*socket_, buffer, std::string(end), ignored);
    return {static_cast<const char*>(buffer.data().data()), buffer.size()};
  }
  void Write(std::string_view text) {
    boost::system::error_code ignored;  // a client that went away has seen enough
    boost::asio::write(*socket_, boost::asio::buffer(text), ignored);
  }
  void AwaitClose() {
    boost::system::error_code closed;
    std::string ignored;
    boost::asio::read(*socket_, boost::asio::dynamic_buffer(ignored), closed);
  }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::optional<boost::asio::ip::tcp::socket> socket_;
  std::thread thread_;
};

std::string Read(ScriptedServer& server) { return server.ReadUntil("\r\n\r\n"); }

void AnswerOnce(ScriptedServer& server) {
  Read(server);
  server.Write(kOk);
}

TEST(Endpoint, IsAUrlOfAHostAndAPort) {
  const auto parsed = ParseEndpoint("http://127.0.0.1:7420/").value();
  EXPECT_EQ(parsed.host, "127.0.0.1");
  EXPECT_EQ(parsed.port, 7420);
  EXPECT_EQ(parsed.url, "http://127.0.0.1:7420");
  EXPECT_EQ(ParseEndpoint("http://tocsin").value().port, 80);
  EXPECT_EQ(ParseEndpoint("http://[::1]:7420").value().host, "::1");
  for (const char* url : {"", "localhost:7420", "http://", "http://:1", "http://x:0", "http://x:65536", "http://x:1x",
                          "http://x:", "http://[::1", "http://[::1]x", "http://a@b", "http://x/v1", "http://x?y"}) {
    EXPECT_THAT(ParseEndpoint(url).error().message, HasSubstr("http://127.0.0.1:7420")) << url;
  }
  EXPECT_THAT(ParseEndpoint("resp://127.0.0.1:7421").error().message,
              AllOf(HasSubstr("RESP port"), HasSubstr("write it as http://127.0.0.1:7420")));
  EXPECT_EQ(ParseEndpoint("https://x").value().port, 443);
  EXPECT_NE(ParseEndpoint("https://x").value().tls, nullptr);
  EXPECT_EQ(ParseEndpoint("http://x").value().tls, nullptr);
  EXPECT_THAT(ParseEndpoint("http://x", {.insecure = true}).error().message, HasSubstr("--insecure is for a --server"));
  EXPECT_THAT(ParseEndpoint("https://x", {.ca = "/nowhere"}).error().message,
              HasSubstr("--ca: /nowhere cannot be used"));
  EXPECT_THAT(ParseEndpoint("https://x", {.key = "k"}).error().message, HasSubstr("--cert is missing"));
}

TEST(HttpClient, SendsWhatItShouldOverOneConnection) {
  std::vector<std::string> heads;
  {
    ScriptedServer server({[&](ScriptedServer& one) {
      for (int i = 0; i < 2; ++i) {
        heads.push_back(Read(one));
        one.Write(kOk);
      }
    }});
    HttpClient client(server.endpoint(), "secret");
    EXPECT_EQ(client.Call("GET", "/a", "", kLimit).value().body, "{}");
    EXPECT_EQ(client.Call("DELETE", "/b", "", kLimit).value().status, 200U);
  }
  ASSERT_EQ(heads.size(), 2U);
  EXPECT_THAT(heads[0], testing::StartsWith("GET /a HTTP/1.1\r\n"));
  EXPECT_THAT(heads[0], HasSubstr("\r\nAuthorization: Bearer secret\r\n"));
  EXPECT_THAT(heads[1], testing::StartsWith("DELETE /b HTTP/1.1\r\n"));
}

TEST(HttpClient, AGetIsAskedAgainWhereAKeptConnectionBreaks) {
  ScriptedServer server({[](ScriptedServer& one) {
                           AnswerOnce(one);
                           Read(one);  // and closes without an answer
                         },
                         AnswerOnce});
  HttpClient client(server.endpoint(), "");
  EXPECT_TRUE(client.Call("GET", "/", "", kLimit));
  EXPECT_TRUE(client.Call("GET", "/", "", kLimit));
}

TEST(HttpClient, APostIsNeverSentTwice) {
  ScriptedServer server({[](ScriptedServer& one) {
    AnswerOnce(one);
    Read(one);
  }});
  HttpClient client(server.endpoint(), "");
  EXPECT_TRUE(client.Call("GET", "/", "", kLimit));
  const auto answer = client.Call("POST", "/", "", kLimit);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("broke off before it answered"));
}

TEST(HttpClient, AConnectionClosedWhileIdleIsNoticedBeforeAPost) {
  ScriptedServer server({AnswerOnce, [&](ScriptedServer& one) {
                           AnswerOnce(one);
                           one.AwaitClose();
                         }});
  {
    HttpClient other(server.endpoint(), "");
    HttpClient client(server.endpoint(), "");
    ASSERT_TRUE(client.Call("GET", "/", "", kLimit));
    // The server takes its next connection only after it closed the first.
    ASSERT_TRUE(other.Call("GET", "/", "", kLimit));
    const auto answer = client.Call("POST", "/", "", Millis(100));
    ASSERT_FALSE(answer) << "nobody answers a third connection";
    EXPECT_EQ(answer.error().code, Code::kTimedOut) << answer.error().message;
  }
}

TEST(HttpClient, AnAnswerThatNeverComesEndsAtTheLimit) {
  ScriptedServer server({[](ScriptedServer& one) {
    Read(one);
    one.AwaitClose();
  }});
  HttpClient client(server.endpoint(), "");
  const auto answer = client.Call("GET", "/", "", Millis(50));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kTimedOut);
  EXPECT_THAT(answer.error().message, HasSubstr("did not answer within 50ms"));
}

TEST(HttpClient, AbortEndsTheCallUnderWayAndAllLaterOnes) {
  std::promise<void> asked;
  ScriptedServer server({[&](ScriptedServer& one) {
    Read(one);
    asked.set_value();
    one.AwaitClose();
  }});
  HttpClient client(server.endpoint(), "");
  std::thread other([&] {
    asked.get_future().wait();
    client.Abort();
  });
  const RealClock clock;
  const auto begin = clock.IoNow();
  EXPECT_EQ(client.Call("POST", "/", "", kLimit).error().code, Code::kShuttingDown);
  EXPECT_LT(clock.IoNow() - begin, kLimit) << "it was the limit that ended it";
  EXPECT_EQ(client.Call("POST", "/", "", kLimit).error().code, Code::kShuttingDown);
  other.join();
}

TEST(HttpClient, SaysWhereNobodyListens) {
  Endpoint endpoint;
  {
    ScriptedServer server({});
    endpoint = server.endpoint();
  }
  const auto answer = HttpClient(endpoint, "").Call("GET", "/", "", kLimit);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, testing::StartsWith("cannot reach " + endpoint.url + ": connection refused; is"));
}

TEST(HttpClient, ADropWithoutAnAnswerMayBeTheRespPort) {
  ScriptedServer server({[](ScriptedServer& one) { Read(one); }});
  const auto answer = HttpClient(server.endpoint(), "").Call("POST", "/", "{}", kLimit);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("is this the RESP port? --server takes the HTTP one"));
}

TEST(HttpClient, LargeAnswersArrive) {
  const std::string body(80 << 20, 'x');
  ScriptedServer server({[&](ScriptedServer& one) {
    Read(one);
    one.Write("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
    one.Write(body);
  }});
  const auto answer = HttpClient(server.endpoint(), "").Call("GET", "/", "", kLimit);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->body == body);
}

}  // namespace
}  // namespace tocsin::cli
