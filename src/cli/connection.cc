#include "cli/connection.h"

#include <cctype>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/error.hpp>

#include "cli/human_time.h"

namespace tocsin::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;

std::string Lower(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

error_code Connection::Connect(const Endpoint& endpoint, Millis limit) {
  error_code code;
  const auto found =
      tcp::resolver(io).resolve(endpoint.host, std::to_string(endpoint.port), tcp::resolver::numeric_service, code);
  if (code) return code;
  stream.emplace(io);
  stream->expires_after(limit);
  code = Await([&](auto done) { stream->async_connect(found, std::move(done)); });
  if (code) {
    stream.reset();
    return code;
  }
  error_code ignored;  // it is only faster
  stream->socket().set_option(tcp::no_delay(true), ignored);
  return {};
}

void Connection::DropIfStale() {
  if (!stream) return;
  char byte = 0;
  error_code code;
  stream->socket().non_blocking(true, code);
  stream->socket().receive(asio::buffer(&byte, 1), tcp::socket::message_peek, code);
  if (code != asio::error::would_block) stream.reset();
}

void Connection::Abort() {
  aborted = true;
  asio::post(io, [this] {
    if (stream) stream->cancel();
  });
}

std::unexpected<Error> Explain(const Endpoint& endpoint, const Problem& problem, Millis limit) {
  if (problem.code == beast::error::timeout) {
    return Fail(Code::kTimedOut, "{} did not answer within {}{}", endpoint.url, ExactDuration(limit),
                problem.sent ? "; whether it did what was asked is not known" : "");
  }
  if (!problem.sent) {
    const bool refused = problem.code == asio::error::connection_refused;
    return Fail(Code::kIo, "cannot reach {}: {}{}", endpoint.url, Lower(problem.code.message()),
                refused ? "; is the server running? start it with `make run`" : "");
  }
  return Fail(Code::kIo, "{} broke off before it answered ({}); whether it did what was asked is not known",
              endpoint.url, Lower(problem.code.message()));
}

}  // namespace tocsin::cli
