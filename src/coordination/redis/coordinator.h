// RedisCoordinator: members as leases in Redis. Each node beats three times a session: one script renews its lease,
// removes those that ran out, and returns the list. A change is published, so that the others beat at once; nothing
// depends on that, because every node also beats when a lease that it knows of runs out.
//
// Only the two scripts of this folder touch the list. Three keys under one hash tag:
//   {<prefix>:members}:lease    zset: id -> end of its lease, in ms by Redis' own clock
//   {<prefix>:members}:record   hash: id -> what shared/membership.h writes
//   {<prefix>:members}:version  rises with every change of who is a member
// A script that changes the list publishes the id of its caller on the channel {<prefix>:members}.
//
// To change the format: give the keys other names, and say that all nodes have to be restarted together. Nodes of the
// two versions do not see each other; both would take every group, again and again, until the others are gone.
//
// Owned by the composition root. Threads: everything on the thread that runs `io`; not destroyed within its own
// callbacks.
//
// Invariants:
//  - A node that is joined holds a lease: by its own steady clock, less than a session has passed since it sent the
//    last beat that Redis answered, and Redis counts from later than that. So it reports joined = false no later than
//    others see it gone.
//  - At most one beat is under way.
#pragma once

#include "clients/redis/client.h"
#include "coordination/shared/membership.h"

namespace tocsin {

// The texts of scripts/beat.lua and scripts/leave.lua.
extern const char* const kBeatScript;
extern const char* const kLeaveScript;

struct RosterKeys {
  explicit RosterKeys(std::string_view prefix);

  std::string channel;
  std::string lease;
  std::string record;
  std::string version;
};

struct RedisCoordinatorOptions {
  std::string prefix = "tocsin";  // of the keys; nodes with the same one are one cluster
  Millis session{6'000};          // a node that has not beaten for this long is gone
};

class RedisCoordinator final : public LeasedCoordinator {
 public:
  static constexpr Millis kSessionMin{1'000};
  /// No lease is longer. One that seems to be was given before somebody set Redis' clock back, and is shortened.
  static constexpr Millis kSessionMax{60'000};

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

 private:
  struct Roster;

  RedisCoordinator(boost::asio::io_context& io, const Clock& clock, std::unique_ptr<redis::Client> client,
                   RedisCoordinatorOptions options);

  void Beat();
  void OnBeat(TimePoint sent, Result<redis::Reply> answer);
  void Apply(TimePoint sent, Roster roster);
  /// Before the view is replaced: members whose leases have run out.
  void NoteLostSince(const Roster& roster);
  void SendLeave();
  void SetState(bool connected, std::string state);
  void OnTimer() override;
  redis::Command BeatCommand() const;
  /// The answer to it. What Redis refused is an Error.
  Result<Roster> ReadRoster(const redis::Reply& reply) const;

  boost::asio::io_context& io_;
  const RedisCoordinatorOptions options_;
  const RosterKeys keys_;
  const std::unique_ptr<redis::Client> client_;
  int64_t version_ = 0;     // of the list in view_
  bool under_way_ = false;  // a beat, and next_ is max
  bool again_ = false;      // beat again as soon as this one is answered
  bool closed_ = false;
};

}  // namespace tocsin
