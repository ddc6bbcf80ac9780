// Session: one connection. Reads a request, hands it to its handler, writes the answer, reads the next: pipelined
// requests are answered in their order. Lives on one loop and is touched by that loop's thread alone.
//
// Owned by its Server until it is closed; after that by what is still under way for it (a read, a write, an Answer).
//
// Invariants: at most one read and one write are under way; a body is read only once its route is found, its sender is
// allowed to call that, and its length is checked and charged to the budget; in every phase but kHandling there is a
// deadline, which the server's tick enforces; while a reserve waits, little of what is sent behind it is read.
//
// A client that closes its sending side gets the answers to all that it sent. Only a parked reserve ends with that:
// most often the client is gone as a whole, and jobs that were handed to it would wait for their leases to end.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/json/parser.hpp>

#include "frontend/http/call.h"
#include "frontend/http/chunked.h"
#include "frontend/http/gzip.h"
#include "frontend/http/router.h"
#include "net/budget.h"
#include "net/connection.h"
#include "net/listener.h"

namespace tocsin::http {

class Server;

class Session final : public net::Connection {
 public:
  Session(Server& server, net::Socket socket, net::ConnectionPass pass);

  void Start();
  void Close() override;
  /// The server stops: closes now, or after the answer that is under way.
  void Drain();
  /// A reserve that waits, and that the new tokens no longer allow, is answered empty: no job leaves for it.
  void TokensChanged();
  bool Expired(std::chrono::steady_clock::time_point now) const { return now >= deadline_; }
  /// The deadline has passed: a request that did not arrive in time is answered, everything else is closed.
  void TimeOut();

  bool open() const { return phase_ != Phase::kClosed; }
  /// Whether the client of the request takes packed answers.
  bool TakesGzip() const;
  Status MakeRoom(size_t bytes);
  void Send(Response response);
  void Park(ReserveId id);

 private:
  enum class Phase {
    kIdle,    // between requests
    kHeader,  // the first byte of a request is here
    kBody,
    kHandling,  // a handler has the request
    kPacking,   // it has answered
    kWriting,
    kLingering,  // the last answer is written; what the client still sends is thrown away
    kClosed,
  };

  // A transfer's deadline begins anew with so many bytes.
  static constexpr size_t kMovedBytes = 64 << 10;

  void Enter(Phase phase, Millis deadline);
  /// Bytes of a body or an answer went over: a transfer may take long, as long as it moves.
  void Moved(size_t bytes, Millis deadline);
  void Next();
  void Read();
  void OnRead(const boost::system::error_code& error, size_t bytes);
  void Advance();
  void TakeHeader();
  void ExpectBody();
  void TakeBody();
  void TakeChunks();
  bool BodyIsComplete() const;
  void AckNow();
  void Continue();
  Error BodyTooLarge() const;
  void Dispatch();
  void DropRequest();
  /// Finds who answers the request, and whether its sender may ask. The answer where not.
  std::optional<Response> FindRoute();
  Status CheckCaller();
  std::optional<ReserveId> Unpark();
  void Watch();
  void CloseIfGone();
  void OnWatch(const boost::system::error_code& error, size_t bytes);
  void OnReadError(const boost::system::error_code& error);
  /// Sends it when it is packed.
  void Pack(Response response);
  void PackNext(Response response);
  void SendAs(Response response, std::string_view encoding);
  void MakeHead(const Response& response, std::string_view encoding);
  void Write();
  void OnWritten(const boost::system::error_code& error, size_t bytes);
  void Linger();
  /// Answers a request that cannot be read to its end; the connection is of no more use.
  void Refuse(Response refusal);
  void Refuse(const Error& error) { Refuse(ErrorResponse(error)); }

  Server& server_;
  net::Socket socket_;
  net::ConnectionPass pass_;
  Phase phase_ = Phase::kIdle;
  std::chrono::steady_clock::time_point deadline_;
  std::chrono::steady_clock::time_point began_;
  size_t moved_ = 0;  // since the deadline was set

  boost::beast::flat_buffer buffer_;
  std::array<char, 512> watched_;  // what arrives during a long poll
  size_t scanned_ = 0;             // bytes of the buffer that hold no end of a header
  bool reading_ = false;
  bool gone_ = false;  // the client closed its sending side

  std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> request_;  // parses its header
  std::optional<ChunkedDecoder> chunks_;  // of a chunked body that is not complete
  std::string body_;
  size_t body_bytes_ = 0;       // by its Content-Length
  net::Charge request_charge_;  // its body, until it is answered
  size_t body_bytes_max_ = 0;
  Match match_;
  std::shared_ptr<const auth::TokenSet> tokens_;  // that were asked whether it is allowed
  const auth::Grant* grant_ = nullptr;            // of these
  std::optional<Response> refusal_;               // known from its header; sent when the body is read
  boost::json::parser json_;
  std::optional<ReserveId> parked_;
  size_t route_ = 0;  // for the metrics
  bool head_ = false;
  bool keep_alive_ = true;
  bool unread_ = false;  // part of the request is not read

  std::unique_ptr<Packing> packing_;
  std::string out_head_;
  std::string out_body_;
  size_t out_sent_ = 0;  // of both
  net::Charge answer_charge_;
};

}  // namespace tocsin::http
