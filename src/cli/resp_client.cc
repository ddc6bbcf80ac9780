#include "cli/resp_client.h"

#include <algorithm>
#include <array>

#include <boost/asio/write.hpp>
#include <boost/beast/core/error.hpp>

#include "cli/connection.h"
#include "cli/output.h"

namespace tocsin::cli {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Kind = RespValue::Kind;
using Replies = std::vector<RespValue>;

constexpr size_t kPartBytes = size_t{1} << 16;

/// Why there are no replies: the connection's fault, or the server's.
struct Failure {
  Error error;
  bool broken = false;  // it broke after the request was sent, and not by a limit
};

std::unexpected<Error> ForeignAnswer(const Endpoint& endpoint, std::string_view what) {
  return Fail(Code::kInternal, "{} answered with something else than it should ({}): is it a Tocsin server?",
              endpoint.url, what);
}

std::unexpected<Error> HttpPort(const Endpoint& endpoint) {
  return Fail(Code::kInternal, "{} answered in HTTP: try --server http{}, or the server's RESP port", endpoint.url,
              endpoint.url.substr(endpoint.url.find(':')));
}

/// Whether the greeting is that of a Tocsin server.
bool IsTocsin(const RespValue& reply) {
  if (!reply.is(Kind::kMap)) return false;
  for (size_t i = 0; i + 1 < reply.items.size(); i += 2) {
    if (reply.items[i].text == "server") return reply.items[i + 1].text == "tocsin";
  }
  return false;
}

}  // namespace

void RespRequest::Add(std::span<const std::string> words) {
  bytes += fmt::format("*{}\r\n", words.size());
  for (const std::string& word : words) {
    bytes += fmt::format("${}\r\n", word.size());
    bytes += word;
    bytes += "\r\n";
  }
  ++count;
}

Error ErrorOfReply(std::string_view text) {
  const size_t space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space);
  const std::string message = Printable(text.substr(std::min(space + 1, text.size())));
  const auto rows = ErrorTable();
  const auto row = std::ranges::find(rows, word, &ErrorRow::resp);
  if (row == rows.end()) return {Code::kInternal, fmt::format("{}: {}", Printable(word), message), {}};
  return {row->code, fmt::format("{}: {}", row->name, message), {}};
}

struct RespClient::Wire : Connection {
  std::array<char, kPartBytes> part{};

  /// Under the time limit that is set. Fewer replies than commands where the last one is an error and the server closed
  /// behind it.
  std::expected<Replies, Failure> Exchange(const Endpoint& endpoint, const RespRequest& request, Millis limit,
                                           bool sent) {
    std::optional<error_code> written;
    asio::async_write(*stream, asio::buffer(request.bytes), [&](error_code code, size_t) { written = code; });
    RespReader reader;
    Replies replies;
    const auto read = ReadReplies(reader, request.count, replies);
    if (!read || !reader.empty()) stream->close();
    io.restart();
    while (!written) io.run_one();  // it has the request and this frame
    if (!read || !reader.empty() || *written) stream.reset();
    if (read) return replies;
    if (const Error* const error = std::get_if<Error>(&read.error())) {
      const bool http = !sent && part[0] == 'H';
      return std::unexpected(
          Failure{http ? HttpPort(endpoint).error() : ForeignAnswer(endpoint, error->message).error()});
    }
    const error_code code = std::get<error_code>(read.error());
    const bool closed = code == asio::error::eof || code == asio::error::connection_reset;
    if (closed && !replies.empty() && replies.back().is(Kind::kError)) return replies;
    return std::unexpected(
        Failure{Explain(endpoint, {code, sent}, limit).error(), sent && code != boost::beast::error::timeout});
  }

  std::expected<void, std::variant<error_code, Error>> ReadReplies(RespReader& reader, size_t count, Replies& replies) {
    while (replies.size() < count) {
      auto next = reader.Next();
      if (!next) return std::unexpected(std::move(next).error());
      if (*next) {
        replies.push_back(**std::move(next));
        continue;
      }
      size_t size = 0;
      const error_code code = Await([&](auto done) {
        stream->async_read_some(asio::buffer(part), [&size, done](error_code problem, size_t bytes) mutable {
          size = bytes;
          done(problem);
        });
      });
      if (code) return std::unexpected(code);
      reader.Append({part.data(), size});
    }
    return {};
  }

  std::expected<void, Failure> Greet(const Endpoint& endpoint, const std::string& token, Millis limit) {
    RespRequest hello;
    std::vector<std::string> words{"HELLO", "3"};
    if (!token.empty()) words.insert(words.end(), {"AUTH", "default", token});
    hello.Add(words);
    const auto replies = Exchange(endpoint, hello, limit, false);
    if (!replies) return std::unexpected(replies.error());
    const RespValue& reply = replies->front();
    if (IsTocsin(reply) && stream) return {};  // with more behind it than one reply, it is dropped
    stream.reset();
    if (reply.is(Kind::kError)) return std::unexpected(Failure{ErrorOfReply(reply.text)});
    return std::unexpected(Failure{ForeignAnswer(endpoint, "its greeting").error()});
  }

  std::expected<Replies, Failure> Try(const Endpoint& endpoint, const std::string& token, const RespRequest& request,
                                      Millis limit) {
    DropIfStale();
    if (!stream) {
      if (const error_code code = Connect(endpoint, limit)) {
        return std::unexpected(Failure{Explain(endpoint, {code, false}, limit).error()});
      }
      if (auto greeted = Greet(endpoint, token, limit); !greeted) return std::unexpected(std::move(greeted).error());
    }
    stream->expires_after(limit);
    return Exchange(endpoint, request, limit, true);
  }
};

RespClient::RespClient(Endpoint endpoint, std::string token)
    : endpoint_(std::move(endpoint)), token_(std::move(token)), wire_(std::make_unique<Wire>()) {}

RespClient::~RespClient() = default;

Result<Replies> RespClient::Call(const RespRequest& request, bool reads, Millis limit) {
  const bool kept = wire_->stream.has_value();
  if (wire_->aborted) return Fail(Code::kShuttingDown, "interrupted");
  auto replies = wire_->Try(endpoint_, token_, request, limit);
  if (!replies && kept && reads && replies.error().broken && !wire_->aborted) {
    replies = wire_->Try(endpoint_, token_, request, limit);
  }
  if (!replies && wire_->aborted) return Fail(Code::kShuttingDown, "interrupted");
  if (!replies) return std::unexpected(std::move(replies).error().error);
  if (replies->size() < request.count) return std::unexpected(ErrorOfReply(replies->back().text));
  return *std::move(replies);
}

void RespClient::Abort() { wire_->Abort(); }

}  // namespace tocsin::cli
