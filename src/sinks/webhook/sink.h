// WebhookSink: posts the jobs of one topic. Jobs wait in the order of Deliver. At most in_flight requests are under
// way, one on each connection; fewer if the node has no more places for sockets. Idle connections are used again, the
// last one first, and closed after 30 s.
//
// On the thread of its loop. What its Route refers to outlives it.
//
// Invariants: a connection is busy or idle; a new one is opened only when none is idle. A job waits, or is in the
// request of one busy connection, until it is answered. A request is sent a second time only if it went out on a
// connection that had been idle, and not one byte of an answer came.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "net/asio_loop.h"
#include "sinks/webhook/connection.h"
#include "sinks/webhook/message.h"
#include "spi/sink.h"

namespace tocsin::webhook {

struct SinkSettings {
  size_t in_flight = 1;
  size_t batch = 1;
  Millis timeout{0};
  FinalStatuses final_statuses;
};

/// The signer with the secret as it is now.
using ReadSigner = std::function<Result<std::unique_ptr<const Signer>>()>;

class WebhookSink final : public Sink {
 public:
  /// `read_signer` null: nothing is signed.
  WebhookSink(Route route, MessageWriter writer, SinkSettings settings, ReadSigner read_signer);
  ~WebhookSink() override;
  WebhookSink(const WebhookSink&) = delete;
  WebhookSink& operator=(const WebhookSink&) = delete;

  void Deliver(std::shared_ptr<const JobBatch> batch, Answer answer) override;
  void Close(Task done) override;

 private:
  // For its connections.
  friend class Connection;
  void OnEnded(Connection& connection, const Connection::Ending& ending);
  /// It was idle, and cannot be used any more.
  void OnLost(Connection& connection);

  void Pump();
  std::shared_ptr<const Request> NextRequest();
  void RenewSigner();
  void SendAgain(const Request& request, net::Places::Place place);
  std::shared_ptr<Connection> TakeIdle();
  std::shared_ptr<Connection> AddConnection(net::Places::Place place);
  void AwaitPlace();
  void PutBack(const Request& request);
  void Remove(Connection& connection);
  void CloseIdle();
  std::vector<Delivered> OutcomesOf(const Request& request, const Connection::Ending& ending) const;
  void CheckClosed();

  void Expire();
  void ExpireBusy(TimePoint now);
  void SetAlarm(TimePoint at);
  TimePoint Now() const { return route_.loop.clock().IoNow(); }

  Route route_;
  MessageWriter writer_;
  const SinkSettings settings_;
  const ReadSigner read_signer_;
  TimePoint renew_signer_at_;
  std::deque<Item> waiting_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::vector<std::shared_ptr<Connection>> idle_;  // the one that was used last is at the end
  size_t busy_ = 0;

  boost::asio::steady_timer timer_;
  TimePoint alarm_at_ = TimePoint::max();
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);  // checked by handlers in the loop's queue

  TimePoint tell_of_places_at_ = TimePoint::min();
  bool closing_ = false;
  TimePoint close_by_ = TimePoint::max();
  Task closed_;
};

}  // namespace tocsin::webhook
