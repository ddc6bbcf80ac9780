// What the coordinators have in common: a member's record, and a membership that holds only as long as a lease does.
//
// A record is lines of `name=value`, which people can read too. The id is not in it: it is the name of the record. A
// reader skips lines that it does not know, so a version may add some; a member whose record says nothing is a member
// all the same, since every node has to compute the same assignment.
//
// Threads: everything on the thread that runs `io`.
#pragma once

#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "spi/coordinator.h"

namespace tocsin {

std::string EncodeMember(const Member& member);
Member DecodeMember(std::string id, std::string_view record);

/// kInvalidArgument if the session is not between the two.
Status CheckSession(Millis session, Millis min, Millis max);

/// After joined = true a lost lease is always reported (joined = false) before the node joins again.
class LeasedCoordinator : public Coordinator {
 public:
  Members Current() const final { return view_; }
  CoordinatorHealth Health() const final { return {kind_, connected_, state_}; }
  /// Has the other members see it in this node's record.
  void SetFollowsFirst(bool follows) {
    self_.follows_first = follows;
    Refresh();
  }

 protected:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `lapsed` says, for people, that the lease ran out by our own clock.
  LeasedCoordinator(boost::asio::io_context& io, const Clock& clock, std::string_view kind, std::string_view lapsed)
      : clock_(clock), timer_(io), kind_(kind), lapsed_(lapsed) {}

  /// Runs at `next_`, and when the lease ends; never after Leave.
  virtual void OnTimer() = 0;

  void BeginJoin(Member self, std::move_only_function<void(const Members&)> changed);
  void BeginLeave(Done<void> done);
  /// Sets the timer to `next_` or the end of the lease.
  void Arm();
  /// Takes over a list of members, without this node if it has not joined. True if that is a change.
  bool Adopt(std::vector<Member> members, bool joined);
  /// A member has vanished without Leave.
  void NoteLost(Member member);
  /// Reports joined = false if the lease has run out by our own clock.
  void CheckLease();
  void Lose(std::string_view why);
  void Report();

  const Clock& clock_;
  boost::asio::steady_timer timer_;
  Member self_;
  std::move_only_function<void(const Members&)> changed_;
  Members view_;
  bool connected_ = false;
  std::string state_ = "connecting";
  TimePoint lease_end_{};              // while joined
  TimePoint next_ = TimePoint::max();  // when there is something to do
  bool refresh_ = false;               // report the next answer, also if nothing has changed
  bool refreshing_ = false;            // the same for the answer that is awaited
  bool left_ = false;
  Done<void> leave_done_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // late timers and tasks check it

 private:
  const std::string kind_;
  const std::string_view lapsed_;
};

}  // namespace tocsin
