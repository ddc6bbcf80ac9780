// Link: keeps one connection to a server. Asks where the server is and connects; if the connection is lost it does so
// again, after a pause that doubles with each failure, with jitter, so that many clients do not come at once.
// Subclasses use the connection: CommandLink for commands, Subscription for messages.
//
// Owned by a client, on its thread.
//
// Invariants: at most one connection is in use. Older ones, which Renew replaced, only answer what they were sent.
// Locate is called once for each attempt; the answer is ConnectTo or NotFound, at once or later.
#pragma once

#include <memory>
#include <string>
#include <vector>

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
  const Endpoint& endpoint() const { return endpoint_; }
  ServerHealth Health() const;
  /// Why there is no connection; empty if nothing has failed yet.
  const std::string& trouble() const { return trouble_; }

 protected:
  struct Purpose {
    Login login;
    Connection::Use use = Connection::Use::kCommands;
    bool master_only = false;
  };
  Link(Context& context, Purpose purpose);
  /// The owner must have closed it if something was under way.
  ~Link();

  virtual void Locate() = 0;
  virtual void Up() = 0;
  /// The connection in use was lost; another one will be made. Called before GiveBack.
  virtual void Down() = 0;
  /// `current`: from the connection in use, not from an older one.
  virtual void Answered(RequestPtr request, Reply reply, bool current) = 0;
  virtual void Heard(const Reply& reply) = 0;
  /// The connection in use has not answered for a while.
  virtual void Hangs() {}
  virtual void Unknown(Requests requests, const Error& why) = 0;
  /// Requests to send on the next connection, before all others.
  virtual void GiveBack(Requests unsent) = 0;

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
  const Purpose purpose_;
  State state_ = State::kNew;
  std::shared_ptr<Connection> connection_;
  std::vector<std::shared_ptr<Connection>> retired_;
  Endpoint endpoint_;
  std::string trouble_;
  bool was_up_ = false;
  Millis pause_{0};
  Alarm rested_;
};

}  // namespace tocsin::redis
