// Link: keeps one connection alive. Asks where the server is, connects, and when the connection is lost does so again,
// after a pause that doubles with each failure and is blurred, so that many clients do not come at once. What the
// connection is for is the business of who derives from it: Lane (commands), Subscription (messages).
//
// Owned by a client, on its thread.
//
// Invariants: one connection at most is in use; older ones that were replaced while they worked (Renew) only answer
// what they were sent. Locate is asked once for each try and answered with ConnectTo or NotFound, right away or later.
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

  /// Begins. Nothing where it has begun already.
  void Open();
  /// Nothing is called any more; what was under way is given back.
  void Close(Requests& sent, Requests& unsent);

  void ConnectTo(const Endpoint& endpoint);
  void NotFound(const Error& why);
  /// The server may be elsewhere: looks anew, while the present connection answers what it was sent.
  void Renew();
  /// As Renew, where there is nothing to be answered.
  void Drop(const Error& why);

  bool up() const { return state_ == State::kUp; }
  /// Where it is connected, or was last.
  const Endpoint& endpoint() const { return endpoint_; }
  ServerHealth Health() const;
  /// Why there is no connection; empty where there was no trouble yet.
  const std::string& trouble() const { return trouble_; }

 protected:
  struct Purpose {
    Login login;
    Connection::Use use = Connection::Use::kCommands;
    bool master_only = false;
  };
  Link(Context& context, Purpose purpose);
  /// Whoever owns it has closed it where something was under way.
  ~Link();

  virtual void Locate() = 0;
  virtual void Up() = 0;
  /// The connection in use was lost; another one will be made. Before what it held is given back.
  virtual void Down() = 0;
  /// `current`: of the connection in use, not of an older one.
  virtual void Answered(RequestPtr request, Reply reply, bool current) = 0;
  virtual void Heard(const Reply& reply) = 0;
  /// The connection in use has answered nothing for a while.
  virtual void Hangs() {}
  virtual void Unknown(Requests requests, const Error& why) = 0;
  /// To be sent on the next connection, before all others.
  virtual void GiveBack(Requests unsent) = 0;

  /// The connection in use works: one that is lost before that counts as a failed try, however far it came.
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
