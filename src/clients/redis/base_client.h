// BaseClient: what the topologies have in common: requests with their deadlines and their budget, what is tried again,
// notices, the subscription. Where a command goes is the business of MasterClient and ClusterClient.
//
// Invariants: a request is answered exactly once, never within Call; user code runs last in whatever calls it, so that
// it may call or close the client.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clients/redis/context.h"
#include "clients/redis/lane.h"
#include "clients/redis/subscription.h"

namespace tocsin::redis {

class BaseClient : public Client, protected Lane::Owner {
 public:
  /// Begins to connect.
  virtual void Start() = 0;

  void Close() final;
  void Call(Command command, Answer answer) final;
  void Subscribe(std::string channel, Message message) final;
  void OnUp(std::move_only_function<void()> up) final { ups_.push_back(std::move(up)); }

 protected:
  explicit BaseClient(std::unique_ptr<Context> context);

  /// Hands a request to a lane, or to Later where none is known.
  virtual void Route(RequestPtr request) = 0;
  /// What was under way is appended.
  virtual void CloseLanes(Requests& sent, Requests& unsent) = 0;
  /// Where the subscription should connect to.
  virtual void WhereToListen(Link& subscription) = 0;
  /// MOVED or ASK.
  virtual void Redirected(Lane& lane, RequestPtr request, Reply reply) = 0;
  /// The server that a lane uses takes no writes.
  virtual void Demoted(Lane& lane) = 0;
  /// It cannot carry out commands now, and says why.
  virtual void Postponed(Lane& /*lane*/, std::string_view /*why*/) {}

  void Answered(Lane& lane, RequestPtr request, Reply reply, bool current) final;
  void Failed(Requests requests, const Error& why) final;

  RequestPtr MakeRequest(Command command, Answer answer);
  void Finish(RequestPtr request, Result<Reply> result);
  /// Routes it again after a short pause; fails it where its deadline would pass before.
  void Later(RequestPtr request, std::string_view why);
  /// Does not wait for the end of the pauses.
  void RetryNow();
  /// Fails it at the end of this turn, for those who must not be answered at once.
  void Refuse(RequestPtr request, Error why);
  /// OnUp, once for all calls of one turn.
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
