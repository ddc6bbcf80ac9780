// Answers: compressed if the client accepts that, charged to the budget, and written.
#include <boost/asio/post.hpp>
#include <boost/beast/http/status.hpp>

#include "base/result.h"
#include "frontend/http/encode.h"
#include "frontend/http/json_writer.h"
#include "frontend/http/server.h"
#include "frontend/http/session.h"

namespace tocsin::http {
namespace {

namespace beast = boost::beast;
using boost::asio::buffer;
using boost::system::error_code;

constexpr std::string_view kVary = "Vary: Accept-Encoding\r\n";
constexpr std::string_view kGzipped = "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n";
constexpr size_t kWriteMax = 1 << 20;  // of a body, in one turn
constexpr Millis kLookTime{1'000};     // how often to look at a stream that waits

}  // namespace

Response ErrorResponse(const Error& error) { return {.status = RowOf(error.code).http, .body = EncodeError(error)}; }

void Answer::Send(Response response) {
  TOCSIN_CHECK(session_ != nullptr);
  const auto session = std::exchange(session_, nullptr);
  session->Guard([&] { session->Send(std::move(response)); });
}

Status Session::MakeRoom(size_t bytes) {
  if (!answer_charge_.Reach(bytes, account_)) return std::unexpected(server_.NoRoom());
  return {};
}

Status Session::MakeRoomForWhole(size_t bytes) {
  if (!answer_charge_.ReachWhole(bytes, account_)) return std::unexpected(server_.NoRoom());
  return {};
}

shared::AnswerRoom Session::NewRoom() const { return {server_.budget(), account_}; }

std::shared_ptr<shared::AnswerRoom> Session::NewSharedRoom() const {
  return std::make_shared<shared::AnswerRoom>(server_.budget(), account_);
}

void Session::ReleaseLeases() {
  const Leases leases = std::exchange(leases_, {});
  if (!leases.tokens.empty()) server_.context().service.Release(server_.loop(), leases);
}

void Session::BeginSteps() {
  Unpark();
  phase_ = Phase::kPacking;
  deadline_.Clear();
}

void Session::Send(Response response) {
  leases_ = std::exchange(response.leases, {});
  if (!open()) return ReleaseLeases();
  Unpark();
  if (response.gzipped) return SendAs(std::move(response), kGzipped);
  if (response.HasMore()) return SendAs(std::move(response), kVary);
  const bool packable = response.body.size() >= kGzipBytesMin && request_;
  if (!packable) return SendAs(std::move(response), {});
  if (!TakesGzip()) return SendAs(std::move(response), kVary);
  if (response.body.size() > kGzipBytesAtOnce) return Pack(std::move(response));
  std::string packed = server_.gzip().Compress(response.body);
  if (packed.empty()) return SendAs(std::move(response), kVary);
  response.body = std::move(packed);
  SendAs(std::move(response), kGzipped);
}

bool Session::TakesGzip() const { return !head_ && AcceptsGzip(FieldOf(beast::http::field::accept_encoding)); }

std::string_view Session::FieldOf(std::string_view name) const {
  const auto value = request_->get()[beast::string_view(name.data(), name.size())];
  return {value.data(), value.size()};
}

std::string_view Session::FieldOf(beast::http::field name) const {
  const auto value = request_->get()[name];
  return {value.data(), value.size()};
}

void Session::Pack(Response response) {
  if (!answer_charge_.Reach(response.body.size() + kPackingBytes, account_)) return SendAs(std::move(response), kVary);
  phase_ = Phase::kPacking;
  deadline_.Clear();
  packing_ = std::make_unique<Packing>(std::move(response.body));
  PackNext(std::move(response));
}

void Session::PackNext(Response response) {
  if (!open()) return packing_.reset();
  const bool done = packing_->Step();
  const bool pays = packing_->Pays() && answer_charge_.Reach(packing_->bytes());
  if (pays && !done) {
    return server_.loop().Post(
        Handler([this, response = std::move(response)]() mutable { PackNext(std::move(response)); }));
  }
  const auto packing = std::move(packing_);
  response.body = pays ? packing->TakePacked() : packing->TakeBody();
  answer_charge_.Lower(response.body.size());
  SendAs(std::move(response), pays ? kGzipped : kVary);
}

void Session::SendAs(Response response, std::string_view encoding) {
  const size_t bytes = response.body.size() + response.more_bytes;
  answer_charge_.Lower(bytes);  // a handler may have asked for more room than it needed
  if (!answer_charge_.Reach(bytes, account_)) {
    ReleaseLeases();
    response = ErrorResponse(server_.NoRoom());  // small: no charge is needed
    encoding = {};
  }
  server_.Record(route_, response.status, server_.loop().clock().IoNow() - began_);
  if (server_.draining()) keep_alive_ = false;
  chunked_ = response.HasMore() && request_->get().version() >= 11;
  if (response.stream || (response.more && !chunked_))
    keep_alive_ = false;  // the end of the connection is that of the body
  MakeHead(response, encoding);
  DropRequest();
  net::Free(out_body_);
  if (!head_) {
    more_ = std::move(response.more);
    stream_ = std::move(response.stream);
    more_bytes_ = response.more_bytes;
    SetBody(std::move(response.body), !HasMore());
  }
  out_sent_ = 0;
  Enter(Phase::kWriting, net::Deadline::kMovedTime);
  Write();
}

void Session::MakeHead(const Response& response, std::string_view encoding) {
  out_head_ = "HTTP/1.1 ";
  AppendInteger(out_head_, response.status);
  out_head_ += ' ';
  out_head_ += std::string_view(beast::http::obsolete_reason(static_cast<beast::http::status>(response.status)));
  out_head_ += "\r\nContent-Type: ";
  out_head_ += response.content_type;
  if (chunked_) {
    out_head_ += "\r\nTransfer-Encoding: chunked";
  } else if (!response.HasMore() &&
             response.status != 304) {  // a 304 has no body, and would tell the length of another
    out_head_ += "\r\nContent-Length: ";
    AppendInteger(out_head_, static_cast<int64_t>(response.body.size()));
  }
  out_head_ += "\r\n";
  out_head_ += encoding;
  out_head_ += response.fields;
  if (!response.allow.empty()) fmt::format_to(std::back_inserter(out_head_), "Allow: {}\r\n", response.allow);
  if (response.status == 401) out_head_ += "WWW-Authenticate: Bearer\r\n";
  if (!keep_alive_) {
    out_head_ += "Connection: close\r\n";
  } else if (request_->get().version() < 11) {
    out_head_ += "Connection: keep-alive\r\n";
  }
  out_head_ += "\r\n";
}

void Session::SetBody(std::string body, bool last) {
  if (chunked_ && !body.empty()) {
    fmt::format_to(std::back_inserter(out_head_), "{:x}\r\n", body.size());
    body += "\r\n";
  }
  if (chunked_ && last) body += "0\r\n\r\n";
  out_body_ = std::move(body);
}

void Session::AskForMore() {
  phase_ = Phase::kPacking;
  auto take = Handler([this](Piece piece) { OnPiece(std::move(piece)); });
  if (!stream_) {
    deadline_.Pause(server_.loop().clock().IoNow());
    return more_(std::move(take));
  }
  if (server_.draining()) return OnPiece({.last = true});
  answer_charge_.Lower(more_bytes_);
  deadline_.Set(After(kLookTime));
  const auto stream = stream_;  // a piece that cannot be sent ends the session's own
  stream->Next(std::move(take));
}

void Session::LookAtStream() {
  if (PeerHasClosed()) return Close();
  deadline_.Set(After(kLookTime));
  const auto stream = stream_;
  stream->Beat();
}

void Session::OnPiece(Piece piece) {
  if (!open()) return;
  if (piece.failure) std::rethrow_exception(piece.failure);
  const bool streams = stream_ != nullptr;
  if (piece.last) {
    more_ = nullptr;
    stream_ = nullptr;
  }
  out_head_.clear();
  SetBody(std::move(piece.bytes), piece.last);
  out_sent_ = 0;
  if (!answer_charge_.Reach(out_body_.size() + more_bytes_, account_)) return Cut();
  if (streams) {
    Enter(Phase::kWriting, net::Deadline::kMovedTime);
  } else {
    phase_ = Phase::kWriting;
    deadline_.Resume(server_.loop().clock().IoNow());
  }
  Write();
}

void Session::Write() {
  const size_t head_left = out_head_.size() - std::min(out_sent_, out_head_.size());
  const std::array<boost::asio::const_buffer, 2> out = {
      buffer(out_head_) + out_sent_, buffer(buffer(out_body_) + (out_sent_ + head_left - out_head_.size()), kWriteMax)};
  error_code error;
  const size_t bytes = WriteSome(out, error);
  if (error && error != boost::asio::error::would_block) return Close();
  out_sent_ += bytes;
  const bool whole = out_sent_ == out_head_.size() + out_body_.size();
  if (!whole || HasMore()) Moved(bytes);
  if (whole) {
    leases_ = {};
    // Later: many requests may be pipelined, and the answer to one must not begin within that to another.
    return boost::asio::post(server_.loop().io(), Handler([this] { OnSent(); }));
  }
  if (!HoldAnswer()) return Cut();
  AwaitWritable([this](const error_code& failed) {
    if (!open()) return;
    failed ? Close() : Write();
  });
}

bool Session::HoldAnswer() {
  if (buffer_.capacity() > buffer_.size()) buffer_.shrink_to_fit();
  const size_t ahead = buffer_.size() > net::Budget::kHeldBytes ? buffer_.size() : 0;
  const size_t left = out_head_.size() + out_body_.size() - out_sent_;
  if (left <= net::Budget::kSmallBytes && out_body_.capacity() > left) {
    const size_t of_head = std::min(out_sent_, out_head_.size());
    (out_head_.substr(of_head) + out_body_.substr(out_sent_ - of_head)).swap(out_body_);
    net::Free(out_head_);
    out_sent_ = 0;
    answer_charge_.Lower(left + ahead + more_bytes_);
  }
  return answer_charge_.Hold(std::min(left, out_body_.size()) + ahead + more_bytes_, account_);
}

void Session::OnSent() {
  if (!open()) return;
  net::Free(out_body_);
  if (HasMore()) return AskForMore();
  more_bytes_ = 0;
  answer_charge_.Clear();
  if (keep_alive_) return Next();
  if (!unread_ && buffer_.size() == 0) return Close();
  phase_ = Phase::kEnded;
  deadline_.Clear();
  buffer_.clear();
  buffer_.shrink_to_fit();
  Linger();
}

}  // namespace tocsin::http
