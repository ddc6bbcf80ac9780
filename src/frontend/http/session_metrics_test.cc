// Metrics that are sent while they are made.
#include <gmock/gmock.h>

#include "frontend/http/session_test_site.h"
#include "frontend/http/unzip_for_test.h"

namespace tocsin::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr Millis kSecond{1'000};
const std::string kGetSmall = "GET /small HTTP/1.1\r\nHost: x\r\n\r\n";

class SessionMetricsTest : public TestSite {};

/// What a client makes of a chunked body.
std::string Dechunked(std::string_view body) {
  std::string text;
  while (true) {
    const size_t end = body.find("\r\n");
    const size_t size = std::stoul(std::string(body.substr(0, end)), nullptr, 16);
    if (size == 0) {
      EXPECT_EQ(body.substr(end), "\r\n\r\n");
      return text;
    }
    text += body.substr(end + 2, size);
    body.remove_prefix(end + 2 + size);
    EXPECT_TRUE(body.starts_with("\r\n"));
    body.remove_prefix(2);
  }
}

auto Lines(std::string_view text) { return std::ranges::count(text, '\n'); }

TEST_F(SessionMetricsTest, MetricsArePackedForThoseWhoTakeThat) {
  const auto get = [&](std::string_view fields) {
    auto client = Connect();
    Send(client, fmt::format("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}\r\n", fields));
    return ReadToEnd(client);
  };
  const std::string plain = get("");
  EXPECT_THAT(plain, AllOf(HasSubstr("\r\nContent-Type: text/plain; version=0.0.4\r\n"),
                           HasSubstr("\ntocsin_http_connections 1\n"), Not(HasSubstr("gzip"))));
  const std::string packed = get("Accept-Encoding: gzip\r\n");
  EXPECT_THAT(packed,
              AllOf(HasSubstr("\r\nContent-Type: text/plain; version=0.0.4\r\n"),
                    HasSubstr("\r\nContent-Encoding: gzip\r\nVary: Accept-Encoding\r\n"), HasSubstr("\r\n\x1f\x8b")));
  const std::string text = Unzip(std::string_view(packed).substr(packed.find("\r\n\r\n") + 4), 1 << 20);
  EXPECT_THAT(text, HasSubstr("\ntocsin_http_connections 1\n"));
}

TEST_F(SessionMetricsTest, LongMetricsAreSentInPieces) {
  const auto figures = metrics_.AddCollector([](metrics::Samples& samples) {
    metrics::Table table{.label = "topic", .columns = {{metrics::Kind::kGauge, "depth", "Depth."}}};
    for (int i = 0; i < 100'000; ++i) table.rows.push_back(fmt::format("t{:05}", i));
    table.values.assign(table.rows.size(), 7);
    samples.Add(std::move(table));
  });
  const auto get = [&](std::string_view version, std::string_view fields) {
    auto client = Connect();
    Send(client, fmt::format("GET /metrics HTTP/{}\r\nHost: x\r\n{}\r\n", version, fields));
    const std::string answer = ReadToEnd(client);
    const size_t end = answer.find("\r\n\r\n") + 4;
    return std::pair(answer.substr(0, end), answer.substr(end));
  };
  const auto [head, body] = get("1.1", "Connection: close\r\n");
  EXPECT_THAT(head, AllOf(HasSubstr("\r\nTransfer-Encoding: chunked\r\n"), Not(HasSubstr("Content-Length"))));
  const std::string text = Dechunked(body);
  EXPECT_GT(text.size(), 2U << 20);
  for (const char* row : {"00000", "00063", "00064", "99999"}) {
    EXPECT_THAT(text, HasSubstr(fmt::format("\ndepth{{topic=\"t{}\"}} 7\n", row)));
  }
  EXPECT_EQ(Lines(Dechunked(get("1.1", "Connection: close\r\n").second)), Lines(text));
  const auto packed = get("1.1", "Connection: close\r\nAccept-Encoding: gzip\r\n");
  EXPECT_THAT(packed.first, HasSubstr("\r\nContent-Encoding: gzip\r\nVary: Accept-Encoding\r\n"));
  EXPECT_EQ(Lines(Unzip(Dechunked(packed.second), 2 * text.size())), Lines(text));
  const auto old = get("1.0", "");
  EXPECT_THAT(old.first, AllOf(Not(HasSubstr("chunked")), HasSubstr("\r\nConnection: close\r\n")));
  EXPECT_EQ(Lines(old.second), Lines(text));
  auto client = Connect();
  Send(client, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(ReadUntil(client, "\r\n\r\n"), HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
  Send(client, kGetSmall);
  EXPECT_THAT(ReadUntil(client, "small"), StartsWith("HTTP/1.1 200 "));
  EXPECT_LT(Metric("tocsin_transfer_memory_bytes"), kBudget);
}

TEST_F(SessionMetricsTest, APieceThatCannotBeMadeEndsItsConnectionAlone) {
  auto figures = metrics_.AddCollector([](metrics::Samples&) { throw std::runtime_error("thrown"); });
  for (const char* path : {"/metrics", "/throw_piece"}) {
    auto client = Connect();
    Send(client, fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", path));
    EXPECT_THAT(ReadToEnd(client), Not(HasSubstr("\r\n0\r\n"))) << path;
  }
  EXPECT_EQ(server_->exceptions(), 2U);
  figures = {};
  auto client = Connect();
  Send(client, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(ReadToEnd(client), HasSubstr("\ntocsin_http_connections 1\n"));
}

TEST_F(SessionMetricsTest, AScrapeThatIsReadTooSlowlyIsClosed) {
  const auto figures = metrics_.AddCollector([](metrics::Samples& samples) {
    metrics::Table table{.label = "topic", .columns = {{metrics::Kind::kGauge, "depth", "Depth."}}};
    for (int i = 0; i < 100'000; ++i) table.rows.push_back(std::string(50, 't') + fmt::format("{:05}", i));
    table.values.assign(table.rows.size(), 7);
    samples.Add(std::move(table));
  });
  client_buffer_bytes = 4096;
  // The session waits for its client: all pieces that were asked for are made, and there is no room for more.
  const auto fill_buffers = [&] {
    for (int i = 0; i < 20; ++i) {
      bool made = false;
      scraper_.Run(loop_, [] {}, [&](const Status&) { made = true; });
      RunWhile([&] { return !made; });
      Settle();
    }
  };
  // Pieces are a few KiB when they are packed: each leaves long before a deadline of its own would come.
  const auto ends = [&](size_t bytes_each_20_s) {
    auto client = Connect();
    Send(client, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept-Encoding: gzip\r\n\r\n");
    while (!client.closed) {
      const size_t want = client.got.size() + bytes_each_20_s;
      RunWhile([&] {
        client.Take();
        return client.got.size() < want && !client.closed;
      });
      fill_buffers();
      Pass(20 * kSecond);
    }
    EXPECT_GT(client.got.size(), bytes_each_20_s);
    return client.got.ends_with("\r\n0\r\n\r\n");
  };
  EXPECT_FALSE(ends(8 << 10)) << "below the floor";
  EXPECT_TRUE(ends(40 << 10)) << "above it";
}

}  // namespace
}  // namespace tocsin::http
