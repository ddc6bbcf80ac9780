#include "cli/transport/http_client.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "base/version.h"
#include "cli/text/human.h"
#include "net/stream.h"

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
  long check = 0;     // why OpenSSL refused the server's certificate; 0: it did not
};

/// How a port behaves that does not speak HTTP.
bool IsDrop(error_code code) { return code == http::error::end_of_stream || code == asio::error::connection_reset; }

std::string Lower(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

/// What helps if the server's certificate is refused.
std::string_view HelpFor(long check) {
  switch (check) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return "; if you trust its authority, name the file of that with --ca";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "; --server has to name the host as the certificate does";
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "; the server needs a new one";
    default:
      return "";
  }
}

/// The same for what the server or the TLS of the connection said; empty if it is nothing about TLS.
std::optional<std::string> ExplainTls(const Problem& problem) {
  if (problem.check != X509_V_OK) {
    return fmt::format("its certificate is refused: {}{}", X509_verify_cert_error_string(problem.check),
                       HelpFor(problem.check));
  }
  const bool closed = problem.code == asio::error::eof || problem.code == asio::error::connection_reset ||
                      problem.code == asio::ssl::error::stream_truncated;
  if (closed && !problem.sent) {
    return "it closed the connection during the TLS handshake: does that port speak TLS? If not, begin --server with "
           "http://";
  }
  const std::string message = problem.code.message();
  if (message.contains("wrong version number")) return "it does not speak TLS there: begin --server with http://";
  if (message.contains("certificate required") || message.contains("handshake failure")) {
    return fmt::format("{}; it may need a client certificate: --cert and --cert-key", message);
  }
  if (message.contains("alert")) return fmt::format("it refused the connection or the client certificate: {}", message);
  return std::nullopt;
}

std::unexpected<Error> Explain(const Endpoint& endpoint, const Problem& problem, Millis limit) {
  if (problem.code == beast::error::timeout) {
    return Fail(Code::kTimedOut, "{} did not answer within {}{}", endpoint.url, ExactDuration(limit),
                problem.sent ? "; whether it did what was asked is not known" : "");
  }
  if (problem.code == http::error::body_limit) {
    return Fail(Code::kTooLarge, "the answer of {} is over {} bytes", endpoint.url, kAnswerBytesMax);
  }
  if (endpoint.tls) {
    if (const auto why = ExplainTls(problem)) return Fail(Code::kIo, "cannot reach {}: {}", endpoint.url, *why);
  }
  if (!problem.sent) {
    const bool refused = problem.code == asio::error::connection_refused;
    return Fail(Code::kIo, "cannot reach {}: {}{}", endpoint.url, Lower(problem.code.message()),
                refused ? "; is the server running? start it with `make run`" : "");
  }
  return Fail(Code::kIo, "{} broke off before it answered ({}); whether it did what was asked is not known",
              endpoint.url, Lower(problem.code.message()));
}

/// Null without TLS.
Result<std::shared_ptr<asio::ssl::context>> LoadTls(const TlsFlags& flags, bool tls) {
  const std::pair<std::string_view, bool> given[] = {{"--ca", !flags.ca.empty()},
                                                     {"--cert", !flags.cert.empty()},
                                                     {"--cert-key", !flags.key.empty()},
                                                     {"--insecure", flags.insecure}};
  for (const auto& [name, is_given] : given) {
    if (is_given && !tls) return Fail(Code::kInvalidArgument, "{} is for a --server that begins with https://", name);
  }
  if (!tls) return nullptr;
  if (flags.cert.empty() != flags.key.empty()) {
    return Fail(Code::kInvalidArgument, "{} is missing: a certificate and its key are given together",
                flags.cert.empty() ? "--cert" : "--cert-key");
  }
  auto context = net::MakeTlsContext(
      {.on = true, .ca_file = flags.ca, .cert_file = flags.cert, .key_file = flags.key, .verify = !flags.insecure});
  if (context) return std::shared_ptr(*std::move(context));
  const std::string& field = context.error().field;
  const std::string_view flag = field == "tls.ca_file" ? "--ca" : field == "tls.cert_file" ? "--cert" : "--cert-key";
  return std::unexpected(std::move(context).error().Prefixed(flag));
}

}  // namespace

Result<Endpoint> ParseEndpoint(std::string_view url, const TlsFlags& flags) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kTls = "https://";
  const auto bad = [&](std::string_view why) {
    return Fail(Code::kInvalidArgument, "--server: \"{}\" {}; write it as http://127.0.0.1:7420", url, why);
  };
  if (url.starts_with("resp://")) return bad("names the RESP port, which is for Redis clients; tocsin speaks HTTP");
  const bool tls = url.starts_with(kTls);
  if (!tls && !url.starts_with(kPlain)) return bad("begins neither with http:// nor with https://");
  const std::string_view scheme = tls ? kTls : kPlain;
  while (url.ends_with('/') && url.size() > scheme.size()) url.remove_suffix(1);
  Endpoint endpoint{.port = static_cast<uint16_t>(tls ? 443 : 80), .url = std::string(url)};
  std::string_view rest = url.substr(scheme.size());
  if (rest.find_first_of("/?#@ ") != std::string_view::npos) return bad("has more than a host and a port");
  const bool bracket = rest.starts_with('[');
  const size_t host_end = bracket ? rest.find(']') : std::min(rest.find(':'), rest.size());
  if (host_end == std::string_view::npos) return bad("has a bracket that is not closed");
  endpoint.host = rest.substr(bracket ? 1 : 0, host_end - (bracket ? 1 : 0));
  rest.remove_prefix(host_end + (bracket ? 1 : 0));
  if (endpoint.host.empty()) return bad("has no host");
  if (!rest.empty()) {
    const auto [end, problem] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), endpoint.port);
    if (rest[0] != ':' || problem != std::errc{} || end != rest.data() + rest.size() || endpoint.port == 0) {
      return bad("has no port of 1 to 65535 after its host");
    }
  }
  TOCSIN_ASSIGN(endpoint.tls, LoadTls(flags, tls));
  return endpoint;
}

/// One connection, made when it is needed, and driven by an event loop of its own that runs only during a call. Every
/// operation that Await begins ends by the time limit that was set last, or by an Abort.
class HttpClient::Connection {
 public:
  std::expected<HttpAnswer, Problem> Try(const Endpoint& endpoint, const Request& request, Millis limit) {
    DropIfStale();
    if (!stream_) {
      buffer_.clear();
      if (const Problem problem = Connect(endpoint, limit); problem.code) {
        Drop();
        return std::unexpected(problem);
      }
    }
    stream_->expires_after(limit);
    auto answer = tls_ ? Exchange(*tls_, request) : Exchange(*stream_, request);
    if (!answer) Drop();
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

  Problem Connect(const Endpoint& endpoint, Millis limit) {
    error_code code;
    const auto found =
        tcp::resolver(io_).resolve(endpoint.host, std::to_string(endpoint.port), tcp::resolver::numeric_service, code);
    if (code) return {code};
    stream_.emplace(io_);
    stream_->expires_after(limit);
    code = Await([&](auto done) { stream_->async_connect(found, std::move(done)); });
    if (code) return {code};
    error_code ignored;  // no_delay only makes it faster
    stream_->socket().set_option(tcp::no_delay(true), ignored);
    return endpoint.tls ? Secure(endpoint) : Problem();
  }

  Problem Secure(const Endpoint& endpoint) {
    tls_.emplace(*stream_, *endpoint.tls);
    SSL* const ssl = tls_->native_handle();
    error_code not_an_address;
    asio::ip::make_address(endpoint.host, not_an_address);
    // SNI is for names alone (RFC 6066).
    const bool set = not_an_address ? SSL_set_tlsext_host_name(ssl, endpoint.host.c_str()) == 1 &&
                                          SSL_set1_host(ssl, endpoint.host.c_str()) == 1
                                    : X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), endpoint.host.c_str()) == 1;
    if (!set) return {asio::error::invalid_argument};
    Problem problem;
    problem.code = Await([&](auto done) { tls_->async_handshake(asio::ssl::stream_base::client, std::move(done)); });
    if (problem.code && SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE) problem.check = SSL_get_verify_result(ssl);
    return problem;
  }

  void Drop() {
    tls_.reset();
    stream_.reset();
  }

  /// Drops a connection that the server closed while it was idle: nothing was sent on it, so any request may use a new
  /// one.
  void DropIfStale() {
    if (!stream_) return;
    char byte = 0;
    error_code code;
    stream_->socket().non_blocking(true, code);
    stream_->socket().receive(asio::buffer(&byte, 1), tcp::socket::message_peek, code);
    if (code != asio::error::would_block) Drop();
  }

  template <class Stream>
  std::expected<HttpAnswer, Problem> Exchange(Stream& stream, const Request& request) {
    error_code code = Await([&](auto done) { http::async_write(stream, request, std::move(done)); });
    if (code) return std::unexpected(Problem{code, true});
    http::response_parser<http::string_body> parser;
    parser.body_limit(kAnswerBytesMax);
    code = Await([&](auto done) { http::async_read(stream, buffer_, parser, std::move(done)); });
    if (code) return std::unexpected(Problem{code, true});
    HttpAnswer answer{parser.get().result_int(), std::move(parser.get().body())};
    if (!parser.keep_alive()) Drop();
    return answer;
  }

  asio::io_context io_{1};
  std::optional<beast::tcp_stream> stream_;                   // while connected
  std::optional<asio::ssl::stream<beast::tcp_stream&>> tls_;  // the same, with TLS
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
  if (!kept && !endpoint_.tls && IsDrop(answer.error().code))
    error.error().message += "; is this the RESP port? --server takes the HTTP one";
  return error;
}

void HttpClient::Abort() { connection_->Abort(); }

}  // namespace tocsin::cli
