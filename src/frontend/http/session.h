// Session: one HTTP connection. Reads a request, hands it to its handler, writes the answer, reads the next one.
// Pipelined requests are answered in their order.
//
// Invariants: at most one read and one write are under way. The session reads a body only after it found the route,
// checked that the caller may use it, and checked the length and charged it to the budget. Every phase except
// kHandling and kPacking has a deadline; the pieces of one answer share it. While a reserve waits, the session reads at
// most kAheadMax bytes after it. What it keeps while it waits for its client is charged (Charge::Hold). An idle session
// owns no buffer.
//
// A stream (Stream) is an answer without an end. While it waits for something to tell, the session looks every second
// whether its client has gone. It ends when the server drains, or when its caller may no longer call.
//
// A client that closes its sending side gets the answers to everything that it sent. Only a parked reserve and a
// stream end then: most often the whole client is gone, and jobs that were handed to it would wait for their leases to
// end.
#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include "core/service.h"
#include "frontend/http/decode.h"
#include "frontend/http/gzip.h"
#include "frontend/http/router.h"
#include "frontend/shared/answer_room.h"
#include "net/budget.h"
#include "net/chunked.h"
#include "net/connection.h"

namespace tocsin::http {

struct Context;
class Server;

/// What the helper's thread made of a large body.
struct ParsedBody {
  Result<std::shared_ptr<Document>> document = nullptr;
  std::optional<Result<SubmitRequest>> submit = {};  // if it submits jobs: decoded and checked too, without its topic
  std::exception_ptr failure;
  std::atomic<bool> unwanted = false;  // the client has gone
};

/// A part of a body that is made while it is sent.
struct Piece {
  std::string bytes = {};
  bool last = false;
  std::exception_ptr failure = {};  // thrown while it was made
};
/// The rest of such a body: hands the next piece to its argument, on the session's loop.
using TakePiece = std::move_only_function<void(Piece)>;
using MoreBody = std::move_only_function<void(TakePiece)>;

/// An answer without an end. Owned by its session, and used on its loop alone.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Hands out the next piece, when there is one. Not called again before that.
  virtual void Next(TakePiece take) = 0;
  /// Called every second while it waits: it may hand out a sign of life.
  virtual void Beat() = 0;
  /// Who may call has changed: whether the caller may go on.
  virtual bool StillAllowed(const auth::TokenSet* tokens) const = 0;
};

struct Response {
  int status = 200;
  std::string body;
  std::string_view content_type = "application/json";
  std::string allow;                    // of a 405: the methods that the path takes
  std::string fields;                   // further lines of the header, each with its CRLF
  bool gzipped = false;                 // the body is packed already
  Leases leases = {};                   // that it hands out: released if it cannot be sent
  MoreBody more = {};                   // none: the body is whole
  size_t more_bytes = 0;                // memory that it takes
  std::shared_ptr<Stream> stream = {};  // in place of `more`: an answer without an end

  bool HasMore() const { return more != nullptr || stream != nullptr; }
};

Response ErrorResponse(const Error& error);

class Session final : public net::Connection {
 public:
  Session(Server& server, net::Socket socket, net::ConnectionPass pass);

  void Start() override;
  void Drain() override;
  void TokensChanged() override;
  bool IsLate(net::Deadline::TimePoint now) const override;
  /// Answers a request that did not arrive in time; closes in any other phase.
  void TimeOut() override;

  /// A field of the request's header, empty if there is none. For a handler, before it answers.
  std::string_view FieldOf(boost::beast::http::field name) const;
  std::string_view FieldOf(std::string_view name) const;
  /// What the caller shows for itself: the header Authorization, or the cookie in its form; and its certificate.
  Credentials Shown() const;
  /// Who may call; null: everybody.
  const std::shared_ptr<const auth::TokenSet>& tokens() const { return tokens_; }
  /// Whether the client accepts compressed answers.
  bool TakesGzip() const;
  Status MakeRoom(size_t bytes);
  Status MakeRoomForWhole(size_t bytes);
  /// For an answer that shows jobs.
  shared::AnswerRoom NewRoom() const;
  /// The same for a reserve, whose claim may go on after the answer.
  std::shared_ptr<shared::AnswerRoom> NewSharedRoom() const;
  void TakeRoom(shared::AnswerRoom& room) { answer_charge_.Absorb(room.charge()); }
  /// The answer is made in several turns: the request does not wait in the service any more.
  void BeginSteps();
  void Send(Response response);
  /// The request waits in the service: a client that goes away takes it back.
  void Park(ReserveId id);
  /// Of a body that its handler parses.
  BodyLimits body_limits();
  /// Handles the request that has arrived. For Server::Serve.
  void Run();

 private:
  enum class Phase {
    kIdle,    // between requests
    kHeader,  // the first byte of a request has arrived
    kBody,
    kHandling,  // a handler has the request
    kPacking,   // the answer is being made or compressed, or its next piece made
    kWriting,
    kEnded,  // closed, or lingering after the last answer
  };

  void OnClose() override;
  void Enter(Phase phase, Millis time);
  /// Bytes of a body or an answer were transferred.
  void Moved(size_t bytes);
  void Next();
  void Read();
  void WaitToRead();
  void OnReadable(boost::system::error_code error);
  /// Charges what is kept of the request while the session waits for the client. False if there is no room.
  bool HoldRequest();
  void Advance();
  void TakeHeader();
  void ExpectBody();
  void TakeBody();
  /// Returns how many of the bytes were part of it.
  size_t AppendToBody(std::string_view bytes);
  void TakeChunks();
  bool BodyIsComplete() const;
  void AckNow();
  void Continue();
  Error BodyTooLarge() const;
  void Dispatch();
  /// Parses a large body on the helper's thread, then handles the request.
  void ParseElsewhere();
  void Handle(std::shared_ptr<ParsedBody> parsed);
  void DropRequest();
  void FreeDocument();
  /// Finds the request's route and checks the caller. The answer if that fails.
  std::optional<Response> FindRoute();
  Status CheckCaller();
  std::optional<ReserveId> Unpark();
  void Watch();
  void CloseIfPeerHas();
  /// Compresses the answer in steps, then sends it.
  void Pack(Response response);
  void PackNext(Response response);
  void SendAs(Response response, std::string_view encoding);
  void ReleaseLeases();
  void MakeHead(const Response& response, std::string_view encoding);
  /// What is written next, behind out_head_.
  void SetBody(std::string body, bool last);
  void AskForMore();
  bool HasMore() const { return more_ != nullptr || stream_ != nullptr; }
  /// A stream waits for its next piece.
  bool Streams() const { return stream_ != nullptr && phase_ == Phase::kPacking; }
  void LookAtStream();
  void OnPiece(Piece piece);
  void Write();
  /// The rest of the answer waits for the client: false if there is no room for it.
  bool HoldAnswer();
  void OnSent();
  /// Answers a request whose end cannot be read; the connection ends after that.
  void Refuse(Response refusal);
  void Refuse(const Error& error) { Refuse(ErrorResponse(error)); }

  Server& server_;
  Phase phase_ = Phase::kIdle;
  net::Deadline deadline_;
  net::Deadline drain_deadline_;                 // a server that stops does not wait for slow readers
  std::chrono::steady_clock::time_point began_;  // handling the request

  boost::beast::flat_buffer buffer_;
  size_t scanned_ = 0;  // bytes of the buffer that were searched for the end of the header
  bool reading_ = false;

  std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> request_;  // parses the header only
  std::optional<net::ChunkedDecoder> chunks_;                                                  // of an incomplete body
  size_t header_bytes_ = 0;                                                                    // that request_ takes
  std::string body_;
  size_t body_bytes_ = 0;       // as in Content-Length
  net::Charge request_charge_;  // until it is answered
  size_t body_bytes_max_ = 0;
  Match match_;
  std::shared_ptr<const auth::TokenSet> tokens_;  // that the caller was checked against
  const auth::Grant* grant_ = nullptr;            // one of tokens_
  net::Account account_;
  std::shared_ptr<ParsedBody> parsing_;  // the helper's thread is parsing a large body
  std::shared_ptr<Document> document_;   // of a large body
  std::optional<Response> refusal_;      // decided from the header; sent when the body is read
  std::optional<ReserveId> parked_;
  size_t route_ = 0;  // for the metrics
  bool head_ = false;
  bool keep_alive_ = true;
  bool unread_ = false;  // part of the request is not read

  std::unique_ptr<Packing> packing_;
  Leases leases_;  // in the answer that is under way
  std::string out_head_;
  std::string out_body_;
  size_t out_sent_ = 0;    // of head and body
  MoreBody more_;          // the pieces that follow, if any
  size_t more_bytes_ = 0;  // memory that these take
  std::shared_ptr<Stream> stream_;
  bool chunked_ = false;
  net::Charge answer_charge_;
};

/// The promise to reply to one request, once, now or later. Keeps the connection's state alive until it is used, also
/// when the client has gone.
class Answer {
 public:
  explicit Answer(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  Answer(Answer&&) = default;
  Answer& operator=(Answer&&) = default;

  /// Whether the client still waits for it.
  bool Wanted() const { return session_->open(); }
  /// kOverloaded if no memory is left for an answer of this size. Send would say so too, but that is too late if
  /// something was done: a call that changes anything, and whose answer may be over net::Budget::kSmallBytes, asks
  /// before.
  Status MakeRoom(size_t bytes) { return session_->MakeRoom(bytes); }
  /// The same for an answer that cannot be had in parts (Charge::ReachWhole).
  Status MakeRoomForWhole(size_t bytes) { return session_->MakeRoomForWhole(bytes); }
  shared::AnswerRoom NewRoom() const { return session_->NewRoom(); }
  void TakeRoom(shared::AnswerRoom& room) { session_->TakeRoom(room); }
  /// It is made in several turns.
  void BeginSteps() { session_->BeginSteps(); }
  void Send(Response response);
  void Fail(const Error& error) { Send(ErrorResponse(error)); }
  /// The callback of a call to the service: answers an error, or runs `work(answer, value)`. Exceptions end this
  /// connection alone.
  template <class F>
  auto Then(F work) {
    return net::GuardedAnswer(std::move(*this), [work = std::move(work)](Answer& answer, auto result) mutable {
      result ? work(answer, *result) : answer.Fail(OnTheWire(std::move(result).error()));
    });
  }
  std::shared_ptr<net::Connection> connection() const { return session_; }

 private:
  std::shared_ptr<Session> session_;
};

/// One request on its way to its handler.
struct Call {
  const api::Verb* verb;
  const Context& context;
  net::AsioLoop& loop;
  const std::shared_ptr<BodyParser>& parser;
  std::vector<std::string> params;     // of the path
  Query query;                         // with the names that the verb takes, and no others
  std::string_view body;               // lives until the handler returns or answers
  std::shared_ptr<ParsedBody> parsed;  // null if the handler parses the body
  const auth::Grant* grant;            // valid as long as the body; null if everybody may do everything
  Answer answer;
  Session& session;

  /// Once.
  Result<std::shared_ptr<Document>> Parse() {
    return parsed ? std::move(parsed->document) : Document::Parse(parser, body, session.body_limits());
  }
};

/// What the path, the query and the body of a call say, by the fields of its verb.
Result<Decoded> DecodeCall(Call& call);

}  // namespace tocsin::http
