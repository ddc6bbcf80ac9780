// RedisCoordinator: members as leases in Redis (coordination/redis/roster.h). Each node beats three times a session:
// one script renews its lease, removes those that ran out, and returns the list. A change is published, so that the
// others beat at once; nothing depends on that, because every node also beats when a lease that it knows of runs out.
//
// Owned by the composition root. Threads: everything on the thread that runs `io`; not destroyed within its own
// callbacks.
//
// Invariants:
//  - A node that is joined holds a lease: by its own steady clock, less than a session has passed since it sent the
//    last beat that Redis answered, and Redis counts from later than that. So it reports joined = false no later than
//    others see it gone.
//  - After joined = true a lost lease is always reported (joined = false) before the node joins again.
//  - At most one beat is under way.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "clients/redis/client.h"
#include "coordination/redis/roster.h"
#include "metrics/registry.h"
#include "spi/coordinator.h"

namespace tocsin {

struct RedisCoordinatorOptions {
  std::string prefix = "tocsin";  // of the keys; nodes with the same one are one cluster
  Millis session{6'000};          // a node that has not beaten for this long is gone
};

class RedisCoordinator final : public Coordinator {
 public:
  static constexpr Millis kSessionMin{1'000};
  static constexpr Millis kSessionMax = kRosterLeaseMax;

  /// With connections of its own, made from the options of the store's, so that no beat waits behind a large batch;
  /// their time-outs become a third of the session. `io`, `clock` and `metrics` outlive it.
  static Result<std::unique_ptr<RedisCoordinator>> Make(boost::asio::io_context& io, const Clock& clock,
                                                        redis::Options redis, metrics::Registry& metrics,
                                                        RedisCoordinatorOptions options);
  /// Without Leave the lease runs out by itself.
  ~RedisCoordinator() override;

  void Join(Member self, std::move_only_function<void(const Members&)> changed) override;
  void Leave(Done<void> done) override;
  void Refresh() override;
  Members Current() const override { return view_; }
  CoordinatorHealth Health() const override;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  RedisCoordinator(boost::asio::io_context& io, const Clock& clock, std::unique_ptr<redis::Client> client,
                   RedisCoordinatorOptions options);

  void Beat();
  void OnBeat(TimePoint sent, Result<redis::Reply> answer);
  void Apply(TimePoint sent, Roster roster);
  void SendLeave();
  /// Reports joined = false if the lease has run out by our own clock.
  void CheckLease();
  void Lose(std::string_view why);
  void Report();
  void SetState(bool connected, std::string state);
  void Arm();

  boost::asio::io_context& io_;
  const Clock& clock_;
  const RedisCoordinatorOptions options_;
  const RosterKeys keys_;
  const std::unique_ptr<redis::Client> client_;
  boost::asio::steady_timer timer_;

  Member self_;
  std::move_only_function<void(const Members&)> changed_;
  Members view_;
  int64_t version_ = 0;  // of the list in view_
  bool connected_ = false;
  std::string state_ = "connecting";

  TimePoint lease_end_{};                   // while joined
  TimePoint next_beat_ = TimePoint::max();  // max while one is under way
  bool under_way_ = false;
  bool again_ = false;       // beat again as soon as this one is answered
  bool refresh_ = false;     // report the answer to the next beat, also if nothing has changed
  bool refreshing_ = false;  // the same for this beat

  bool left_ = false;
  Done<void> leave_done_;
  bool closed_ = false;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // a late timer checks it
};

}  // namespace tocsin
