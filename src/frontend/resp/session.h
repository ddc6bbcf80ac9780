// Session: one RESP connection. Reads what has arrived, begins all commands in it, and writes the replies that are
// ready, in the order of the commands, in one write.
//
// Invariants: at most one wait for reading and one for writing are under way. The session begins no command while more
// than kUnsentMax bytes of replies wait for a slow reader, while a command that holds is not answered, or while too
// many commands are under way. An idle connection owns no buffer. Incomplete commands and unread replies have
// deadlines, and are charged while they wait for the client (Charge::Hold).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "auth/token_set.h"
#include "core/service.h"
#include "frontend/resp/chunk.h"
#include "frontend/resp/frame.h"
#include "frontend/resp/pipeline.h"
#include "frontend/shared/answer_room.h"
#include "net/budget.h"
#include "net/connection.h"

namespace tocsin::resp {

class Server;

class Session final : public net::Connection {
 public:
  Session(Server& server, net::Socket socket, net::ConnectionPass pass, uint64_t id);

  void Start() override;
  void Drain() override;
  void TokensChanged() override;
  bool IsLate(net::Deadline::TimePoint now) const override;
  void TimeOut() override;
  /// Replies are ready, bytes have arrived, or there is room for more commands or replies.
  void Turn();

  /// The client closed its sending side.
  bool half_closed() const { return half_closed_; }
  Server& server() { return server_; }
  /// Keeps it alive.
  std::shared_ptr<Session> Share() { return std::static_pointer_cast<Session>(shared_from_this()); }

  // For commands and their answers.
  Pipeline& pipeline() { return pipeline_; }
  /// Keeps the arguments of the command alive that is being begun.
  const Bytes& bytes() const { return bytes_; }
  Status MakeRoom(size_t bytes);
  Status MakeRoomForWhole(size_t bytes);
  /// For a reply that shows jobs.
  shared::AnswerRoom NewRoom();
  void TakeRoom(shared::AnswerRoom& room);
  /// The same for a reserve, whose claim may go on after the reply.
  std::shared_ptr<shared::AnswerRoom> NewSharedRoom();
  /// When the reply is made, of up to `bytes`.
  void TakeRoom(shared::AnswerRoom& room, size_t bytes);
  /// To what is needed now.
  void LowerCharges();
  void Park(ReserveId id, std::string_view topic);
  void Unpark();
  Status LogIn(std::string_view token);
  /// What the caller may do; null if everybody may do everything.
  const auth::Grant* grant() const { return grant_; }
  Protocol protocol() const { return protocol_; }
  void SetProtocol(Protocol protocol) { protocol_ = protocol; }
  void CloseWhenAnswered() { closing_ = true; }
  /// Back to the state of a new connection, except for the id.
  void Reset();

  uint64_t id() const { return id_; }
  /// The name that the client set.
  const std::string& name() const { return name_; }
  Status SetName(std::string_view name);

 private:
  void OnClose() override;
  bool IsUnauthenticated() const { return tokens_ != nullptr && grant_ == nullptr; }
  FrameLimits Limits() const;
  /// Unauthenticated connections must log in within kLogInTime.
  void LimitLogIn();
  void SetGrant(const auth::Grant* grant);
  /// What the connection's token allows, or else its certificate.
  const auth::Grant* GrantOfConnection() const;
  Status CheckCaller(const Command& command, std::string_view topic) const;
  /// Bytes of replies that are ready and not sent.
  size_t Unsent() { return out_.size() - sent_ + pipeline_.ReadyBytes(); }
  bool CanBegin();
  void WaitToRead();
  void Receive();
  /// Reads more of an incomplete command for which there is no room while it waits. False if nothing has arrived.
  bool ReceiveMore();
  bool MakeRoomToRead();
  /// The most that the next read may take.
  size_t ReadMax() const;
  /// Whether the budget has no room for another chunk.
  bool IsShortOfRoom() const;
  void Process();
  /// False if the command cannot be begun yet.
  bool Begin(std::span<const std::string_view> args, std::optional<Service::Bundle>& bundle);
  const Command* Find(std::string_view word);
  /// The error for a command that does not exist or is part of a transaction.
  std::optional<Error> RefusalOf(std::string_view word);
  void KeepRest();
  void DropRest();
  /// Refuses commands that are not begun if there is no room to keep them.
  void LimitRest();
  /// The memory that they take; 0 if that is little.
  size_t Rest() const;
  /// Charge what waits for the client. False if there is no room.
  bool HoldRest();
  bool HoldReplies();
  /// Sets the deadline of an incomplete command, of which `size` bytes have arrived.
  void LimitFrame(size_t size);
  /// Answers a command with an error, at once; true, because the command is done.
  bool FailNow(const Error& error);
  /// The same, and ends the connection.
  void Refuse(const Error& error);
  void OnHalfClosed();
  void Write();
  void WaitToWrite();
  void FinishIfDone();

  Server& server_;
  const uint64_t id_;
  Protocol protocol_ = Protocol::kResp2;

  std::string name_;
  std::string token_;
  std::shared_ptr<const auth::TokenSet> tokens_;  // grant_ is one of them
  const auth::Grant* grant_ = nullptr;
  net::Account account_;

  FrameParser parser_;
  std::string tail_;              // bytes of commands that are not begun, if they are few
  std::shared_ptr<Chunk> chunk_;  // the same if they are many: from begin_ to end_
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

  bool refusing_ = false;  // after a MULTI, until its EXEC
  bool reading_ = false;
  bool readable_ = false;  // bytes have arrived
  bool writing_ = false;
  bool stalled_ = false;      // a command could not be begun
  bool half_closed_ = false;  // the client closed its sending side
  bool closing_ = false;      // no more commands are begun
  net::Deadline login_deadline_;
  net::Deadline read_deadline_;
  net::Deadline drain_deadline_;
  net::Deadline write_deadline_;

  friend class Server;
  bool woken_ = false;  // the server will call Turn
  bool light_ = false;  // its last turn was short
};

}  // namespace tocsin::resp
