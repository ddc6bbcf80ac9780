// Link: keeps one connection to a server. Asks where the server is and connects; if the connection is lost it does so
// again, after a pause that doubles with each failure, with jitter, so that many clients do not come at once.
// Subclasses use the connection: CommandLink for commands, Subscription for messages.
//
// Owned by a client, on its thread.
//
// Invariants: at most one connection is in use. Older ones, which Renew replaced, only answer what they were sent.
// Locate is called once for each attempt; the answer is ConnectTo or NotFound, at once or later.
#pragma once

#include <deque>
#include <map>

#include "clients/redis/connection.h"

namespace tocsin::redis {

class Link : private Connection::Owner {
 public:
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Begins to connect, unless it has begun already.
  void Open();
  /// Stops. Returns the requests that were under way; no method of the owner is called after this.
  void Close(Requests& sent, Requests& unsent);

  void ConnectTo(const Endpoint& endpoint);
  void NotFound(const Error& why);
  /// The server may have moved: locates it again, while the present connection answers what it was sent.
  void Renew();
  /// Like Renew, but gives up the present connection.
  void Drop(const Error& why);

  bool up() const { return state_ == State::kUp; }
  /// The server that it is connected to, or was last.
  const Endpoint& endpoint() const { return plan_.endpoint; }
  ServerHealth Health() const;
  /// Why there is no connection; empty if nothing has failed yet.
  const std::string& trouble() const { return trouble_; }

 protected:
  /// The plan without the endpoint.
  Link(Context& context, Connection::Plan plan);
  /// The owner must have closed it if something was under way.
  ~Link();

  virtual void Locate() = 0;
  virtual void Up() = 0;
  /// The connection in use was lost; another one will be made. Called before GiveBack.
  virtual void Down() {}
  /// `current`: from the connection in use, not from an older one.
  virtual void Answered(RequestPtr /*request*/, Reply /*reply*/, bool /*current*/) {}
  virtual void Heard(const Reply& /*reply*/) {}
  /// The connection in use has not answered for a while.
  virtual void Hangs() {}
  virtual void Unknown(Requests /*requests*/, const Error& /*why*/) {}
  /// Requests to send on the next connection, before all others.
  virtual void GiveBack(Requests /*unsent*/) {}

  /// The connection in use works. If one is lost before that, the attempt counts as failed.
  void Proved();

  Context& context() { return context_; }
  Connection& connection() { return *connection_; }
  bool closed() const { return state_ == State::kClosed; }
  bool quiet() const { return retired_.empty() && (connection_ == nullptr || connection_->idle()); }

 private:
  enum class State : uint8_t { kNew, kLocating, kConnecting, kUp, kResting, kClosed };

  void Ready(Connection& connection) final;
  void Replied(Connection& connection, RequestPtr request, Reply reply) final;
  void Pushed(Connection& connection, const Reply& reply) final;
  void Silent(Connection& connection) final;
  void Overdue(Connection& connection, Requests requests) final;
  void Lost(Connection& connection, const Error& why, Requests sent, Requests unsent) final;

  void Look();
  void Rest(const Error& why);
  void Forget(Connection& retired);

  Context& context_;
  Connection::Plan plan_;
  State state_ = State::kNew;
  std::shared_ptr<Connection> connection_;
  std::vector<std::shared_ptr<Connection>> retired_;
  std::string trouble_;
  bool was_up_ = false;
  Millis pause_{0};
  Alarm rested_;
};

/// The link for commands to one server. If it is connected they leave at once; otherwise they wait for a connection
/// until their deadline. After a lost connection, commands that were sent are never sent again; those that were not
/// keep their place in front. Each request returns to the owner exactly once: through Answered, Failed, TakeWaiting or
/// Close.
class CommandLink final : public Link {
 public:
  class Owner {
   public:
    /// Asks for the server's address; the answer is ConnectTo or NotFound.
    virtual void Where(CommandLink& link) = 0;
    virtual void LinkUp(CommandLink& link) = 0;
    virtual void LinkDown(CommandLink& link) = 0;
    /// The server has not answered for a while; called again while that lasts.
    virtual void LinkHangs(CommandLink& link) = 0;
    /// `current`: from the connection in use, not from one that was replaced.
    virtual void Answered(CommandLink& link, RequestPtr request, Reply reply, bool current) = 0;
    virtual void Failed(Requests requests, const Error& why) = 0;

   protected:
    ~Owner() = default;
  };

  /// `master_only`: connects only to masters.
  CommandLink(Context& context, bool master_only, Owner& owner);

  void Send(RequestPtr request);
  Requests TakeWaiting() { return std::exchange(waiting_, {}); }
  /// Nothing waits and nothing is under way.
  bool idle() const { return waiting_.empty() && quiet(); }
  /// Whether anything was sent since this was last asked.
  bool TakeUsed() { return std::exchange(used_, false); }
  void Close(Requests& sent, Requests& unsent);

 private:
  void Locate() override { owner_.Where(*this); }
  void Up() override;
  void Down() override { owner_.LinkDown(*this); }
  void Hangs() override { owner_.LinkHangs(*this); }
  void Answered(RequestPtr request, Reply reply, bool current) override {
    owner_.Answered(*this, std::move(request), std::move(reply), current);
  }
  void Unknown(Requests requests, const Error& why) override { owner_.Failed(std::move(requests), why); }
  void GiveBack(Requests unsent) override;
  /// Takes the requests whose deadline has passed, and sets the timer for the others.
  Requests TakeLate();
  void Expire(Requests late);

  Owner& owner_;
  Requests waiting_;
  Alarm deadline_;
  bool used_ = true;
};

/// The link for messages of channels. Messages that are published while it is not connected are lost: `back` is called
/// whenever the server has confirmed all channels. It pings an idle connection, and so leaves a server that hangs or
/// vanished within command_timeout, or twice Options::beat_min if that is longer.
///
/// With the hook `moved` its channels are sharded. A server before Redis 7, which has no such channels, gets plain
/// subscriptions instead.
class Subscription final : public Link {
 public:
  struct Hooks {
    /// To be answered with ConnectTo or NotFound.
    std::move_only_function<void(Link&)> where;
    std::move_only_function<void()> back;
    /// The server does not serve the hash slot of a channel: its MOVED, or the channel that it has ended. Not called
    /// for plain channels. May call Remove, and must not destroy the link.
    std::move_only_function<void(std::string_view said)> moved = nullptr;
  };

  Subscription(Context& context, Login login, Hooks hooks);

  /// Opens the link if this is the first channel. Replaces the handler of a channel that has one.
  void Add(std::string channel, Client::Message message);
  void Remove(std::string_view channel);
  bool empty() const { return channels_.empty(); }

 private:
  struct Asked {
    enum class Kind : uint8_t { kJoin, kLeave, kPing };
    Kind kind = Kind::kJoin;
    std::string channel;  // if it is about one
    size_t answers = 1;   // to come: a SUBSCRIBE has one for each channel
  };

  void Locate() override { hooks_.where(*this); }
  void Up() override;
  void Heard(const Reply& reply) override;
  void Join(const Command& command, std::string_view channel, size_t channels);
  /// The oldest question has an answer, if it is of this kind.
  void TakeAnswer(Asked::Kind kind);
  /// A channel's subscription has ended: because it was removed, or because its hash slot has moved.
  void Ended(std::string_view channel);
  /// The oldest question is answered with an error. Only a refused SUBSCRIBE costs the connection.
  void Refused(std::string_view error);
  void Confirmed();
  void Beat();

  Hooks hooks_;
  std::map<std::string, Client::Message, std::less<>> channels_;
  size_t awaited_ = 0;       // confirmations
  std::deque<Asked> asked_;  // commands that this connection has not answered, oldest first
  bool sharded_ = false;     // the channels of this connection are
  bool plain_next_ = false;  // those of the next one are not, because the server cannot do it
  bool heard_ = false;       // anything arrived since the last ping
  Alarm beat_;
};

}  // namespace tocsin::redis
