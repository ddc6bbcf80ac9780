// Connection: one connection to one server. It is not used again after it is lost; its Link makes the next one.
// Commands of one turn of the loop leave in one write; answers come in their order.
//
// Owned by its Link or Inquiry, and by its own handlers. On the client's thread.
//
// Invariants: the owner gets Ready at most once and Lost at most once, neither after Close. Each request returns
// exactly once: through Replied, Overdue, Lost, TakeUnsent or Close. The owner is not called within Start or Send.
//
// Deadlines: a caller gets its error at its command's deadline. If a server has not answered the oldest command within
// command_timeout, the connection is closed. A command that was sent shortly before its deadline does not close the
// connection: its late answer is dropped.
//
// Replicas (Options::wait_replicas): if a write to the socket has scripts whose writes replicas must have, a WAIT goes
// behind them, and their answers are held until it is answered. Redis reads nothing more from the connection meanwhile,
// so nothing more is sent: all that comes in the meantime leaves in one write with one WAIT.
#pragma once

#include <deque>

#include "clients/redis/context.h"

namespace tocsin::redis {

struct Login {
  std::string username;
  std::string password;
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  class Owner {
   public:
    /// The connection can be used.
    virtual void Ready(Connection& connection) = 0;
    virtual void Replied(Connection& connection, RequestPtr request, Reply reply) = 0;
    /// kMessages: everything that the server sends.
    virtual void Pushed(Connection& /*connection*/, const Reply& /*reply*/) {}
    /// Commands are under way, and nothing arrived for kSilence; called again while that lasts. Must not close the
    /// connection.
    virtual void Silent(Connection& /*connection*/) {}
    /// The outcome of these is unknown; the connection stays open.
    virtual void Overdue(Connection& connection, Requests requests) = 0;
    /// The outcome of `sent` is unknown; nothing happened for `unsent`. Both in the order of sending.
    virtual void Lost(Connection& connection, const Error& why, Requests sent, Requests unsent) = 0;

   protected:
    ~Owner() = default;
  };

  static constexpr Millis kSilence{1000};

  enum class Use : uint8_t { kCommands, kMessages };
  struct Plan {
    Endpoint endpoint;
    Login login;
    Use use = Use::kCommands;
    bool master_only = false;  // any other server is refused
  };

  Connection(Context& context, Plan plan, Owner& owner);
  /// Connects, logs in, and asks for the server's role; all within connect_timeout.
  void Start();
  /// From Ready on.
  void Send(RequestPtr request);
  /// kMessages: what comes back is Pushed.
  void Tell(const Command& command);
  /// Requests that were not sent yet.
  Requests TakeUnsent();
  /// The owner is not called after this.
  void Close(Requests& sent, Requests& unsent);
  /// Closes it as if it was lost.
  void Fail(const Error& why);

  bool idle() const { return under_way_.empty() && held_.empty(); }
  const Endpoint& endpoint() const { return plan_.endpoint; }
  const std::string& role() const { return role_; }
  std::chrono::nanoseconds last_round_trip() const { return last_round_trip_; }

 private:
  enum class Step : uint8_t { kAuth, kRole };
  struct Sent {
    RequestPtr request;  // null: nobody waits for this answer
    TimePoint at;
    bool wait = false;  // WAIT
  };
  struct Held {
    RequestPtr request;  // null: its deadline has passed
    Reply reply;
  };

  void Connected(const boost::system::error_code& error);
  void Greet();
  void Greeted(const Reply& reply);
  void Flush();
  void Write();
  void Read();
  void Received(const boost::system::error_code& error, size_t count);
  void Take(Reply reply, TimePoint now);
  void Took(TimePoint sent_at, TimePoint now);
  void CheckDeadlines();
  void WatchDeadlines(TimePoint now);
  void FailWith(std::string_view why);
  bool KnowsScript(const Script& script);
  bool MustReplicate(const Request& request) const;
  void AddWait();
  void Waited(const Reply& reply);

  Context& context_;  // not after Close
  const Plan plan_;
  Owner* owner_;
  net::Stream stream_;
  ReplyBuilder builder_;
  Soon flush_;
  Alarm deadline_;
  bool ready_ = false;
  bool closed_ = false;
  bool writing_ = false;

  std::string out_;      // encoded, to be written next
  std::string sending_;  // being written
  std::deque<Step> greeting_;
  std::deque<Sent> under_way_;
  size_t unsent_ = 0;               // of under_way_, at its end: those in out_
  std::vector<std::string> known_;  // SHA1s of scripts that we sent to the server
  std::deque<Held> held_;           // until the WAIT that is under way is answered
  bool wait_wanted_ = false;        // by a request in out_
  bool waiting_ = false;            // a WAIT is under way
  bool too_few_ = false;            // replicas, said the last one
  TimePoint heard_at_;
  std::string role_;
  std::vector<char> buffer_;

  // Equal round trips are recorded together.
  std::chrono::nanoseconds last_round_trip_{0};
  uint64_t same_round_trips_ = 0;
};

}  // namespace tocsin::redis
