// The contract of Coordinator as a test suite. A back end passes it by giving a CoordinatorWorld and
//
//   INSTANTIATE_TEST_SUITE_P(Redis, CoordinatorContract, testing::Values(WorldMaker{[] { return ...; }}));
//   INSTANTIATE_TEST_SUITE_P(Redis, SharedCoordinatorContract, testing::Values(...));
//
// and linking the library coordinator_contract. The first part is for every coordinator, the second for those with
// which nodes see each other. Members live in processes of their own, behind wires that can be cut, and a real server
// answers them. Nothing sleeps: a test waits for what a member says, with a deadline, or until a time is over in which
// it must not say anything.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/result.h"
#include "spi/contract/coordinator_member.h"
#include "spi/contract/coordinator_process.h"

namespace tocsin {

/// A server without members, for one test.
class CoordinatorWorld {
 public:
  virtual ~CoordinatorWorld() = default;

  virtual Millis session() const = 0;
  /// Where the server is on loopback; 0: there is none.
  virtual uint16_t port() const { return 0; }
  /// In the process of a member: a coordinator that finds the server at `port`.
  virtual std::unique_ptr<CoordinatorSite> MakeSite(uint16_t port) = 0;

  virtual void KillServer() {}
  virtual Status StartServer() { return {}; }
  virtual void PauseServer() {}
  virtual void ContinueServer() {}
};

/// kUnavailable: what it needs is not installed, and the tests are skipped.
using WorldMaker = std::function<Result<std::unique_ptr<CoordinatorWorld>>()>;

class CoordinatorContract : public testing::TestWithParam<WorldMaker> {
 protected:
  using Report = MemberProcess::Report;
  using TimePoint = MemberProcess::TimePoint;
  using Ids = std::vector<std::string>;

  struct Node {
    std::string id;
    std::unique_ptr<Wire> wire;
    std::unique_ptr<MemberProcess> process;
    MemberProcess* operator->() { return process.get(); }
  };

  void SetUp() override;

  /// A node of this name joins; it is not waited for.
  Node& Join(const std::string& id);
  /// Several, until all of them see each other.
  std::vector<Node*> JoinAll(const Ids& ids);

  Millis session() const { return world_->session(); }
  /// Longer than anything takes on a busy machine that is to happen at once.
  static constexpr Millis kSoon{10'000};

  /// Waits for the first view that fits, and returns it; a failure where none comes in time.
  std::optional<Report> Await(Node& node, const std::function<bool(const Report&)>& fits, std::string_view what,
                              Millis within);
  /// Until it is joined and sees these members. An earlier view of other members is skipped.
  std::optional<Report> Sees(Node& node, const Ids& ids, Millis within = kSoon);
  /// Until it says that it is not joined.
  std::optional<Report> Loses(Node& node, Millis within);
  /// It says nothing for so long.
  void StaysQuiet(Node& node, Millis time);
  /// Refreshes, and returns the answer.
  std::optional<Report> Refreshed(Node& node, Millis within = kSoon);
  /// Leaves, and returns the answer.
  std::optional<Report> Left(Node& node, Millis within = kSoon);

  static Ids IdsOf(const Members& members);
  static TimePoint Now() { return std::chrono::steady_clock::now(); }

  std::unique_ptr<CoordinatorWorld> world_;
  std::list<Node> nodes_;
};

class SharedCoordinatorContract : public CoordinatorContract {};

}  // namespace tocsin
