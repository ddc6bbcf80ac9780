#include "cli/http_client.h"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "cli/connection.h"

namespace tocsin::cli {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr uint64_t kAnswerBytesMax = uint64_t{1} << 30;

/// What a port does that is not for HTTP.
bool IsDrop(error_code code) {
  return code == http::error::end_of_stream || code == boost::asio::error::connection_reset;
}

}  // namespace

struct HttpClient::Wire : Connection {
  using Request = http::request<http::string_body>;
  using Parser = http::response_parser<http::string_body>;

  beast::flat_buffer buffer;

  std::expected<HttpAnswer, Problem> Exchange(const Request& request, Millis limit) {
    stream->expires_after(limit);
    error_code code = Await([&](auto done) { http::async_write(*stream, request, std::move(done)); });
    if (code) return std::unexpected(Problem{code, true});
    Parser parser;
    parser.body_limit(kAnswerBytesMax);
    code = Await([&](auto done) { http::async_read(*stream, buffer, parser, std::move(done)); });
    if (code) return std::unexpected(Problem{code, true});
    if (!parser.keep_alive()) stream.reset();
    return HttpAnswer{parser.get().result_int(), std::move(parser.get().body())};
  }

  std::expected<HttpAnswer, Problem> Try(const Endpoint& endpoint, const Request& request, Millis limit) {
    DropIfStale();
    if (!stream) {
      buffer.clear();
      if (const error_code code = Connect(endpoint, limit)) return std::unexpected(Problem{code, false});
    }
    auto answer = Exchange(request, limit);
    if (!answer) stream.reset();
    return answer;
  }
};

HttpClient::HttpClient(Endpoint endpoint, std::string token)
    : endpoint_(std::move(endpoint)), token_(std::move(token)), wire_(std::make_unique<Wire>()) {}

HttpClient::~HttpClient() = default;

Result<HttpAnswer> HttpClient::Call(std::string_view method, std::string_view target, std::string_view body,
                                    Millis limit) {
  Wire::Request request;
  request.version(11);
  request.method_string({method.data(), method.size()});
  request.target({target.data(), target.size()});
  const bool v6 = endpoint_.host.find(':') != std::string::npos;
  request.set(http::field::host,
              fmt::format("{}{}{}:{}", v6 ? "[" : "", endpoint_.host, v6 ? "]" : "", endpoint_.port));
  request.set(http::field::user_agent, "tocsin/" TOCSIN_VERSION);
  if (!token_.empty()) request.set(http::field::authorization, "Bearer " + token_);
  if (!body.empty()) {
    request.set(http::field::content_type, "application/json");
    request.body() = body;
  }
  request.prepare_payload();

  const bool kept = wire_->stream.has_value();
  if (wire_->aborted) return Fail(Code::kShuttingDown, "interrupted");
  auto answer = wire_->Try(endpoint_, request, limit);
  const bool again = !answer && kept && answer.error().sent && method == "GET" && !wire_->aborted &&
                     answer.error().code != beast::error::timeout;
  if (again) answer = wire_->Try(endpoint_, request, limit);
  if (answer) return *std::move(answer);
  if (wire_->aborted) return Fail(Code::kShuttingDown, "interrupted");
  if (answer.error().code == http::error::body_limit) {
    return Fail(Code::kTooLarge, "the answer of {} is over {} bytes", endpoint_.url, kAnswerBytesMax);
  }
  Error error = Explain(endpoint_, answer.error(), limit).error();
  if (!kept && IsDrop(answer.error().code)) {
    error.message +=
        fmt::format("; is this the RESP port? then --server resp{}", endpoint_.url.substr(endpoint_.url.find(':')));
  }
  return std::unexpected(std::move(error));
}

void HttpClient::Abort() { wire_->Abort(); }

}  // namespace tocsin::cli
