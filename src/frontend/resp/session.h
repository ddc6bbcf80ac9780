// Session: one connection that speaks RESP. Reads what has arrived, begins all commands in it, and writes the replies
// that are ready, in the order of the commands, in one go. Lives on one loop and is touched by that loop's thread
// alone.
//
// Owned by its Server until it is closed; after that by what is still under way for it (a wait, an Answer).
//
// Invariants: at most one wait for reading and one for writing are under way; no command is begun while replies of
// more than kUnsentMax wait for a slow reader, while a command that holds is not answered, or while too many are under
// way; an idle connection owns no buffer; a command that does not arrive and replies that are not taken have deadlines.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "auth/token_set.h"
#include "core/service.h"
#include "frontend/resp/chunk.h"
#include "frontend/resp/frame.h"
#include "frontend/resp/pipeline.h"
#include "net/budget.h"
#include "net/connection.h"
#include "net/listener.h"

namespace tocsin::resp {

class Server;

class Session final : public net::Connection {
 public:
  Session(Server& server, net::Socket socket, net::ConnectionPass pass, uint64_t id);

  void Start();
  void Close() override;
  /// The server stops: closes now, or after the replies to what is under way.
  void Drain();
  /// Replies are ready, or there is room for more commands.
  void Turn();
  /// Its token may be known no longer: then it is a stranger's connection, and a reserve that waits is answered empty.
  void TokensChanged();
  /// A deadline has passed, or the client of a reserve that waits is gone: TimeOut is to be called.
  bool IsLate(std::chrono::steady_clock::time_point now) const;
  void TimeOut();

  bool open() const { return !closed_; }
  /// The client closed its sending side.
  bool gone() const { return gone_; }
  Server& server() { return server_; }
  /// Keeps it alive.
  std::shared_ptr<Session> Share() { return std::static_pointer_cast<Session>(shared_from_this()); }

  // For commands and their answers.
  Pipeline& pipeline() { return pipeline_; }
  /// What keeps the arguments of the command alive that is being begun.
  const Bytes& bytes() const { return bytes_; }
  Status MakeRoom(size_t bytes);
  void Park(ReserveId id, std::string_view topic);
  void Unpark();
  Status LogIn(std::string_view token);
  /// What the caller may do; null where everybody may do everything.
  const auth::Grant* grant() const { return grant_; }
  Protocol protocol() const { return protocol_; }
  void SetProtocol(Protocol protocol) { protocol_ = protocol; }
  void CloseWhenAnswered() { closing_ = true; }
  /// As at first, but for its id.
  void Reset();

  uint64_t id() const { return id_; }
  /// That the client gave itself.
  const std::string& name() const { return name_; }
  Status SetName(std::string_view name);
  std::string Peer() const;

 private:
  bool IsStranger() const { return tokens_ != nullptr && grant_ == nullptr; }
  FrameLimits Limits() const;
  /// Somebody who is not logged in has to be soon.
  void LimitLogIn();
  Status CheckCaller(const Command& command, std::string_view topic) const;
  /// Bytes of replies that are ready.
  size_t Unsent() { return out_.size() - sent_ + pipeline_.ReadyBytes(); }
  bool CanBegin();
  void WaitToRead();
  void Receive();
  bool MakeRoomToRead();
  void Process();
  /// False where the command cannot be begun yet.
  bool Begin(std::span<const std::string_view> args, std::optional<Service::Bundle>& bundle);
  const Command* Find(std::string_view word);
  /// The error for a command that does not exist, or that belongs to a transaction.
  std::optional<Error> RefusalOf(std::string_view word);
  void KeepRest();
  /// The time for what is here of a command, which is `size` bytes.
  void LimitFrame(size_t size);
  void Refuse(const Error& error);
  void ClientGone();
  void LowerCharges();
  void Write();
  void WaitToWrite();
  void FinishIfDone();
  void Linger();
  bool Gone() const;

  Server& server_;
  net::Socket socket_;
  net::ConnectionPass pass_;
  const uint64_t id_;
  Protocol protocol_ = Protocol::kResp2;

  std::string name_;
  std::string token_;
  std::shared_ptr<const auth::TokenSet> tokens_;  // that grant_ is one of
  const auth::Grant* grant_ = nullptr;

  FrameParser parser_;
  std::string tail_;              // what is not begun yet, where it is little
  std::shared_ptr<Chunk> chunk_;  // and where it is more: from begin_ to end_
  size_t begin_ = 0;
  size_t end_ = 0;
  Bytes bytes_;
  net::Charge request_charge_;
  const Command* last_ = nullptr;

  Pipeline pipeline_;
  std::optional<ReserveId> parked_;
  std::string parked_topic_;
  std::string out_;
  size_t sent_ = 0;
  net::Charge answer_charge_;

  bool refusing_ = false;  // behind a MULTI, up to its EXEC
  bool reading_ = false;
  bool writing_ = false;
  bool stalled_ = false;    // there is a command that could not be begun
  bool gone_ = false;       // the client closed its sending side
  bool closing_ = false;    // nothing more is begun
  bool lingering_ = false;  // the last reply is written; what the client still sends is thrown away
  bool closed_ = false;
  std::chrono::steady_clock::time_point login_deadline_ = std::chrono::steady_clock::time_point::max();
  std::chrono::steady_clock::time_point read_deadline_ = std::chrono::steady_clock::time_point::max();
  std::chrono::steady_clock::time_point drain_deadline_ = std::chrono::steady_clock::time_point::max();
  std::chrono::steady_clock::time_point write_deadline_ = std::chrono::steady_clock::time_point::max();
  // Since the deadlines were set.
  size_t moved_ = 0;
  size_t written_ = 0;

  friend class Server;
  bool woken_ = false;  // the server will call Turn
};

}  // namespace tocsin::resp
