// Roster: reads the list of members, with the record of each. A record never changes while its node is there, so each
// is read once and kept by name. Owned by the coordinator, on its loop; one reading at a time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordination/zookeeper/session.h"
#include "spi/coordinator.h"

namespace tocsin::zookeeper {

/// The name of a member's node: its id, with escapes for what a path cannot hold.
std::string NodeName(std::string_view id);

class Roster {
 public:
  /// The members, sorted by id; or why they could not be read.
  using OnRead = std::move_only_function<void(Answer, std::vector<Member>)>;

  /// `folder` is the parent of the members' nodes.
  explicit Roster(std::string folder) : folder_(std::move(folder)) {}

  bool reading() const { return on_read_.has_value(); }
  /// Reads, and has the session tell of the next change.
  void Read(Session& session, OnRead on_read);
  /// Forgets a reading under way: its session is dropped.
  void Reset() { on_read_.reset(); }

 private:
  void OnNames(Session& session, Answer answer);
  void OnRecord(const std::string& name, const Answer& answer);
  void End(Answer answer);

  const std::string folder_;
  std::map<std::string, std::optional<Member>> members_;  // by name; nothing while a record is not read yet
  size_t missing_ = 0;                                    // records that are being read
  std::optional<OnRead> on_read_;
};

}  // namespace tocsin::zookeeper
