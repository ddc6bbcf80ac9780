// AlertPoster: posts alerts to alerts.webhook_url, with the webhook sink that also pushes jobs: its deadlines, checks
// of certificates, signatures. One post is under way at a time, and holds what the book has to post at that moment. If
// it fails, the next one is tried after a rest that doubles, and holds what is to be posted by then: nothing queues up.
//
// Made by the main thread; everything else is on the main loop.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/episode.h"
#include "base/result.h"
#include "config/config.h"
#include "core/alerts.h"
#include "metrics/registry.h"
#include "net/asio_loop.h"
#include "sinks/webhook/factory.h"
#include "spi/sink.h"

namespace tocsin {

class AlertPoster {
 public:
  static constexpr size_t kAlertsEach = 500;  // in one post; others follow in the next
  static constexpr Millis kRestMin{1'000};
  static constexpr Millis kRestMax{60'000};

  /// kInvalidArgument names the option that cannot be used. `url`: of this node's HTTP API.
  static Result<std::unique_ptr<AlertPoster>> Make(const Config& config, net::AsioLoop& loop, const Clock& clock,
                                                   metrics::Registry& metrics, AlertBook& book, std::string url);

  /// Begins a post if there is something to post, none is under way, and the rest after a failure is over.
  void Post(const std::function<bool(const AlertCondition&)>& mine);
  /// What is under way is given up. `done` runs when nothing of this runs any more.
  void Close(Task done);

 private:
  AlertPoster(const Config& config, const Clock& clock, metrics::Registry& metrics, AlertBook& book, std::string url);

  std::shared_ptr<const JobBatch> BatchOf(const std::vector<Alert>& alerts);
  void Answered(const std::vector<Alert>& alerts, const Delivered& delivered);

  const Clock& clock_;
  AlertBook& book_;
  const std::string url_;
  const Millis repeat_;
  const std::shared_ptr<metrics::Counter> confirmed_;
  const std::shared_ptr<metrics::Counter> failed_;
  std::unique_ptr<webhook::Factory> factory_;
  std::unique_ptr<Sink> sink_;  // before its factory ends
  Episode failing_{"alert_post_failed"};
  Uid posts_;  // also the number of the last post
  bool busy_ = false;
  Millis rest_{0};
  IoTime rest_until_{};
};

}  // namespace tocsin
