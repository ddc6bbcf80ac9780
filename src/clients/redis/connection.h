// Connection: one connection to one server, from the first packet to the last: it is never used again once it is lost
// (link.h makes the next one). Commands of one turn of the loop leave in one write; answers come in their order.
//
// Owned by its Link or Inquiry, and by its own handlers. On the client's thread.
//
// Invariants: the owner hears Ready at most once and Lost at most once, neither after Close; each request that was
// taken comes back exactly once: through Replied, Overdue, Lost, TakeUnsent or Close. Nothing is called within Start or
// Send.
//
// Deadlines: a caller is told at its command's deadline. A server that has not answered the oldest command for as long
// as a command may take is given up, and the connection with it. A command that was sent shortly before its deadline
// does not take the connection with it: its answer is thrown away when it comes.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "clients/redis/context.h"
#include "clients/redis/reply_builder.h"
#include "clients/redis/request.h"
#include "clients/redis/stream.h"

namespace tocsin::redis {

struct Login {
  std::string username;
  std::string password;
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  class Owner {
   public:
    /// It may be used.
    virtual void Ready(Connection& connection) = 0;
    virtual void Replied(Connection& connection, RequestPtr request, Reply reply) = 0;
    /// kMessages: everything that the server sends.
    virtual void Pushed(Connection& connection, const Reply& reply) = 0;
    /// Something is under way, and nothing was heard for kSilence; again each time that this is so. Nothing is closed
    /// within it.
    virtual void Silent(Connection& connection) = 0;
    /// Their outcome is unknown; the connection goes on.
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
    bool master_only = false;  // a server that is no master is as good as none
  };

  Connection(Context& context, Plan plan, Owner& owner);
  /// Connects, logs in, and asks for the server's role; all within connect_timeout.
  void Start();
  /// From Ready on.
  void Send(RequestPtr request);
  /// kMessages: what comes back is Pushed.
  void Tell(const Command& command);
  /// What has not left yet.
  Requests TakeUnsent();
  /// The owner is not called any more.
  void Close(Requests& sent, Requests& unsent);
  /// As where the connection is lost.
  void Fail(const Error& why);

  bool idle() const { return under_way_.empty(); }
  const Endpoint& endpoint() const { return plan_.endpoint; }
  const std::string& role() const { return role_; }
  std::chrono::nanoseconds last_round_trip() const { return last_round_trip_; }

 private:
  enum class Step : uint8_t { kAuth, kRole };
  struct Sent {
    RequestPtr request;  // null: nobody waits for this answer
    TimePoint at;
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

  Context& context_;  // not after Close
  const Plan plan_;
  Owner* owner_;
  Stream stream_;
  ReplyBuilder builder_;
  Soon flush_;
  Alarm deadline_;
  bool ready_ = false;
  bool closed_ = false;
  bool writing_ = false;

  std::string out_;      // encoded, not begun to be written
  std::string sending_;  // being written
  std::deque<Step> greeting_;
  std::deque<Sent> under_way_;
  size_t unsent_ = 0;               // of under_way_, at its end: those in out_
  std::vector<std::string> known_;  // SHA1s of scripts that the server has from us
  TimePoint heard_at_;
  std::string role_;
  std::vector<char> buffer_;

  // Round trips that took the same time are recorded at once.
  std::chrono::nanoseconds last_round_trip_{0};
  uint64_t same_round_trips_ = 0;
};

}  // namespace tocsin::redis
