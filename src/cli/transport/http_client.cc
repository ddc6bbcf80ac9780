#include "cli/transport/http_client.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "base/version.h"
#include "cli/text/human.h"

namespace tocsin::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Request = http::request<http::string_body>;

constexpr uint64_t kAnswerBytesMax = uint64_t{1} << 30;

struct Problem {
  error_code code;
  bool sent = false;  // the server may have received the request
};

/// How a port behaves that does not speak HTTP.
bool IsDrop(error_code code) { return code == http::error::end_of_stream || code == asio::error::connection_reset; }

std::string Lower(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::unexpected<Error> Explain(const Endpoint& endpoint, const Problem& problem, Millis limit) {
  if (problem.code == beast::error::timeout) {
    return Fail(Code::kTimedOut, "{} did not answer within {}{}", endpoint.url, ExactDuration(limit),
                problem.sent ? "; whether it did what was asked is not known" : "");
  }
  if (problem.code == http::error::body_limit) {
    return Fail(Code::kTooLarge, "the answer of {} is over {} bytes", endpoint.url, kAnswerBytesMax);
  }
  if (!problem.sent) {
    const bool refused = problem.code == asio::error::connection_refused;
    return Fail(Code::kIo, "cannot reach {}: {}{}", endpoint.url, Lower(problem.code.message()),
                refused ? "; is the server running? start it with `make run`" : "");
  }
  return Fail(Code::kIo, "{} broke off before it answered ({}); whether it did what was asked is not known",
              endpoint.url, Lower(problem.code.message()));
}

}  // namespace

Result<Endpoint> ParseEndpoint(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  const auto bad = [&](std::string_view why) {
    return Fail(Code::kInvalidArgument, "\"{}\" {}; write it as http://127.0.0.1:7420", url, why);
  };
  if (url.starts_with("https://")) return bad("is over TLS, which this version does not speak");
  if (url.starts_with("resp://")) return bad("names the RESP port, which is for Redis clients; tocsin speaks HTTP");
  if (!url.starts_with(kScheme)) return bad("does not begin with http://");
  while (url.ends_with('/') && url.size() > kScheme.size()) url.remove_suffix(1);
  Endpoint endpoint{.url = std::string(url)};
  std::string_view rest = url.substr(kScheme.size());
  if (rest.find_first_of("/?#@ ") != std::string_view::npos) return bad("has more than a host and a port");
  const bool bracket = rest.starts_with('[');
  const size_t host_end = bracket ? rest.find(']') : std::min(rest.find(':'), rest.size());
  if (host_end == std::string_view::npos) return bad("has a bracket that is not closed");
  endpoint.host = rest.substr(bracket ? 1 : 0, host_end - (bracket ? 1 : 0));
  rest.remove_prefix(host_end + (bracket ? 1 : 0));
  if (endpoint.host.empty()) return bad("has no host");
  if (rest.empty()) return endpoint;
  const auto [end, problem] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), endpoint.port);
  if (rest[0] != ':' || problem != std::errc{} || end != rest.data() + rest.size() || endpoint.port == 0) {
    return bad("has no port of 1 to 65535 after its host");
  }
  return endpoint;
}

/// One TCP connection, made when it is needed, and driven by an event loop of its own that runs only during a call.
/// Every operation that Await begins ends by the time limit that was set last, or by an Abort.
class HttpClient::Connection {
 public:
  std::expected<HttpAnswer, Problem> Try(const Endpoint& endpoint, const Request& request, Millis limit) {
    DropIfStale();
    if (!stream_) {
      buffer_.clear();
      if (const error_code code = Connect(endpoint, limit)) return std::unexpected(Problem{code, false});
    }
    auto answer = Exchange(request, limit);
    if (!answer) stream_.reset();
    return answer;
  }

  void Abort() {
    aborted_ = true;
    asio::post(io_, [this] {
      if (stream_) stream_->cancel();
    });
  }

  bool aborted() const { return aborted_; }
  bool connected() const { return stream_.has_value(); }

 private:
  /// Runs the loop until the operation that `start` begins has ended.
  template <class Start>
  error_code Await(Start start) {
    if (aborted_) return asio::error::operation_aborted;  // an Abort between two operations finds nothing to cancel
    std::optional<error_code> result;
    start([&](error_code code, auto&&...) { result = code; });
    io_.restart();
    while (!result) io_.run_one();
    return *result;
  }

  error_code Connect(const Endpoint& endpoint, Millis limit) {
    error_code code;
    const auto found =
        tcp::resolver(io_).resolve(endpoint.host, std::to_string(endpoint.port), tcp::resolver::numeric_service, code);
    if (code) return code;
    stream_.emplace(io_);
    stream_->expires_after(limit);
    code = Await([&](auto done) { stream_->async_connect(found, std::move(done)); });
    if (code) {
      stream_.reset();
      return code;
    }
    error_code ignored;  // no_delay only makes it faster
    stream_->socket().set_option(tcp::no_delay(true), ignored);
    return {};
  }

  /// Drops a connection that the server closed while it was idle: nothing was sent on it, so any request may use a new
  /// one.
  void DropIfStale() {
    if (!stream_) return;
    char byte = 0;
    error_code code;
    stream_->socket().non_blocking(true, code);
    stream_->socket().receive(asio::buffer(&byte, 1), tcp::socket::message_peek, code);
    if (code != asio::error::would_block) stream_.reset();
  }

  std::expected<HttpAnswer, Problem> Exchange(const Request& request, Millis limit) {
    stream_->expires_after(limit);
    error_code code = Await([&](auto done) { http::async_write(*stream_, request, std::move(done)); });
    if (code) return std::unexpected(Problem{code, true});
    http::response_parser<http::string_body> parser;
    parser.body_limit(kAnswerBytesMax);
    code = Await([&](auto done) { http::async_read(*stream_, buffer_, parser, std::move(done)); });
    if (code) return std::unexpected(Problem{code, true});
    if (!parser.keep_alive()) stream_.reset();
    return HttpAnswer{parser.get().result_int(), std::move(parser.get().body())};
  }

  asio::io_context io_{1};
  std::optional<beast::tcp_stream> stream_;  // while connected
  beast::flat_buffer buffer_;
  std::atomic<bool> aborted_ = false;
};

HttpClient::HttpClient(Endpoint endpoint, std::string access_token)
    : endpoint_(std::move(endpoint)),
      access_token_(std::move(access_token)),
      connection_(std::make_unique<Connection>()) {}

HttpClient::~HttpClient() = default;

Result<HttpAnswer> HttpClient::Call(std::string_view method, std::string_view target, std::string_view body,
                                    Millis limit) {
  Request request;
  request.version(11);
  request.method_string({method.data(), method.size()});
  request.target({target.data(), target.size()});
  const bool v6 = endpoint_.host.find(':') != std::string::npos;
  request.set(http::field::host,
              fmt::format("{}{}{}:{}", v6 ? "[" : "", endpoint_.host, v6 ? "]" : "", endpoint_.port));
  request.set(http::field::user_agent, fmt::format("tocsin/{}", Version()));
  if (!access_token_.empty()) request.set(http::field::authorization, "Bearer " + access_token_);
  if (!body.empty()) {
    request.set(http::field::content_type, "application/json");
    request.body() = body;
  }
  request.prepare_payload();

  const bool kept = connection_->connected();
  if (connection_->aborted()) return Fail(Code::kShuttingDown, "interrupted");
  auto answer = connection_->Try(endpoint_, request, limit);
  const bool again = !answer && kept && answer.error().sent && method == "GET" && !connection_->aborted() &&
                     answer.error().code != beast::error::timeout;
  if (again) answer = connection_->Try(endpoint_, request, limit);
  if (answer) return *std::move(answer);
  if (connection_->aborted()) return Fail(Code::kShuttingDown, "interrupted");
  auto error = Explain(endpoint_, answer.error(), limit);
  if (!kept && IsDrop(answer.error().code))
    error.error().message += "; is this the RESP port? --server takes the HTTP one";
  return error;
}

void HttpClient::Abort() { connection_->Abort(); }

}  // namespace tocsin::cli
