// ZookeeperCoordinator: members as ephemeral nodes <path>/members/<id>, with the member's record as data. A watch on
// their parent tells of changes. Each member also reads its own node three times a session: the answer proves that the
// session lives and the node is its own, so that the member knows when others may begin to think it gone.
//
// Owned by the composition root. Threads: everything on the loop's, which runs `io`; not destroyed within its own
// callbacks.
//
// Invariants:
//  - A node that is joined has its own ephemeral node: by its own steady clock, less than a session has passed since it
//    sent the last look that ZooKeeper answered. So it reports joined = false no later than others see it gone.
#pragma once

#include "coordination/shared/membership.h"
#include "coordination/zookeeper/roster.h"
#include "coordination/zookeeper/session.h"

namespace tocsin {

struct ZookeeperOptions {
  std::string hosts;             // host:port,host:port,...
  std::string path = "/tocsin";  // nodes with the same one are one cluster; created if it is missing
  Millis session{6'000};         // asked for; the servers may grant another (2 to 20 of their ticks)
  std::string username;          // of a digest; empty: none, and everybody may change what is under the path
  std::string password;
};

class ZookeeperCoordinator final : public LeasedCoordinator {
 public:
  static constexpr Millis kSessionMin{400};
  static constexpr Millis kSessionMax{60'000};

  /// kInvalidArgument, with the field, for options that cannot be used. The others outlive it.
  static Result<std::unique_ptr<ZookeeperCoordinator>> Make(Loop& loop, boost::asio::io_context& io, const Clock& clock,
                                                            ZookeeperOptions options);

  void Join(Member self, std::move_only_function<void(const Members&)> changed) override;
  void Leave(Done<void> done) override;
  void Refresh() override;

 private:
  ZookeeperCoordinator(Loop& loop, boost::asio::io_context& io, const Clock& clock, ZookeeperOptions options);

  void OpenSession();
  void OnEvent(zookeeper::Event event, std::string why);
  /// The session cannot be used any longer: opens another after `wait`.
  void DropSession(std::string why, Millis wait);

  void Register();
  void OnCreated(TimePoint sent, zookeeper::Answer answer);
  void CreateParents(size_t depth);
  /// The node exists already: this session has created it, or an earlier one of this process.
  void OnExisting(TimePoint sent);
  void Registered(TimePoint sent);
  void RegisterLater(const std::string& why);

  void Look();
  void Read();
  void OnMembers(const zookeeper::Answer& answer, std::vector<Member> members);

  void OnTimer() override;
  void SetState(bool connected, std::string state);
  void EndLeave(Status status);

  Loop& loop_;
  const ZookeeperOptions options_;
  const std::string folder_;  // of the members' nodes
  zookeeper::Worker worker_;
  zookeeper::Roster roster_;
  std::shared_ptr<zookeeper::Session> session_;  // null between two

  std::string node_;          // the path of ours
  bool registered_ = false;   // the node was created in this session, and not found missing since
  bool registering_ = false;  // it is being created
  bool looking_ = false;
  bool read_again_ = false;  // something changed during a reading
};

}  // namespace tocsin
