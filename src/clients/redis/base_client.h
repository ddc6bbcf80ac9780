// BaseClient: the part that all topologies share: requests with their deadlines and their budget, retries, notices and
// the subscription. The subclasses, MasterClient and ClusterClient, decide where a command goes.
//
// Invariants: a request is answered exactly once, never within Call. A method that runs user code does so last: that
// code may call or close the client.
#pragma once

#include "clients/redis/link.h"

namespace tocsin::redis {

class BaseClient : public Client, protected CommandLink::Owner {
 public:
  /// Begins to connect.
  virtual void Start() = 0;

  void Close() final;
  void Call(Command command, Answer answer) final;
  void Subscribe(std::string channel, Message message) final {
    subscription_.Add(std::move(channel), std::move(message));
  }
  void SubscribeShard(std::string channel, Message message) override {
    Subscribe(std::move(channel), std::move(message));
  }
  bool HasShards() const override { return false; }
  void Unsubscribe(std::string_view channel) override { subscription_.Remove(channel); }
  void OnUp(std::move_only_function<void()> up) final { ups_.push_back(std::move(up)); }

 protected:
  explicit BaseClient(std::unique_ptr<Context> context);

  /// Hands a request to a link, or to Later if none is known.
  virtual void Route(RequestPtr request) = 0;
  /// Appends the requests that were under way.
  virtual void CloseLinks(Requests& sent, Requests& unsent) = 0;
  /// Where the subscription should connect to.
  virtual void WhereToListen(Link& subscription) = 0;
  /// MOVED or ASK.
  virtual void Redirected(CommandLink& link, RequestPtr request, Reply reply) = 0;
  /// The server of this link accepts no writes.
  virtual void Demoted(CommandLink& link) = 0;
  /// The server cannot run commands now, and says why.
  virtual void Postponed(CommandLink& /*link*/, std::string_view /*why*/) {}

  void Answered(CommandLink& link, RequestPtr request, Reply reply, bool current) final;
  void Failed(Requests requests, const Error& why) final;

  RequestPtr MakeRequest(Command command, Answer answer);
  void Finish(RequestPtr request, Result<Reply> result);
  /// Routes it again after a short pause; fails it if its deadline would pass before.
  void Later(RequestPtr request, std::string_view why);
  /// Retries without waiting for the pauses to end.
  void RetryNow() { RetryUpTo(TimePoint::max()); }
  /// Fails it at the end of this turn, because no answer may come within Call.
  void Refuse(RequestPtr request, Error why);
  /// Runs the OnUp handlers, once for all calls of one turn.
  void NotifyUp() { notify_.Schedule(); }

  Context& context() { return *context_; }
  const Context& context() const { return *context_; }
  Subscription& subscription() { return subscription_; }
  bool closed() const { return closed_; }

 private:
  void RetryUpTo(TimePoint time);
  void AnswerRefused();
  void RunUps();

  std::unique_ptr<Context> context_;
  std::deque<std::move_only_function<void()>> ups_;  // one that runs may add another: they must stay where they are
  std::multimap<TimePoint, RequestPtr> retries_;
  std::vector<std::pair<RequestPtr, Error>> refused_;
  size_t pending_bytes_ = 0;
  bool closed_ = false;
  Subscription subscription_;
  Alarm retry_;
  Soon refuse_;
  Soon notify_;
};

}  // namespace tocsin::redis
