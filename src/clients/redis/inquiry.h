// Inquiry: asks several servers the same question; the first good answer counts. It asks one after the other, and goes
// on to the next if a server does not answer within kPatience: one that hangs costs little.
//
// Owned by the asker, on its thread; destroying it cancels it. `done` runs once, never within the constructor, and may
// destroy the Inquiry.
#pragma once

#include "clients/redis/connection.h"

namespace tocsin::redis {

class Inquiry final : private Connection::Owner {
 public:
  static constexpr Millis kPatience{250};

  struct Question {
    std::vector<Endpoint> servers;
    Login login;
    Command command;
    /// An error if the answer cannot be used; then the next server is asked.
    std::move_only_function<Status(const Endpoint& server, const Reply& reply)> check;
  };
  /// If no server gave a good answer, the error of the last one.
  using Done = std::move_only_function<void(Status)>;

  Inquiry(Context& context, Question question, Done done);
  ~Inquiry();

 private:
  void Ready(Connection& connection) override;
  void Replied(Connection& connection, RequestPtr request, Reply reply) override;
  void Overdue(Connection& connection, Requests requests) override;
  void Lost(Connection& connection, const Error& why, Requests sent, Requests unsent) override;

  void AskNext();
  void Useless(Connection& connection, const Error& why);
  void End(Status status);
  void CloseAll();

  Context& context_;
  Question question_;
  Done done_;
  size_t next_ = 0;
  std::vector<std::shared_ptr<Connection>> open_;
  Error trouble_{Code::kUnavailable, "no server is known", {}};
  Alarm patience_;
};

}  // namespace tocsin::redis
