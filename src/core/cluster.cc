#include "core/cluster.h"

#include "model/placement.h"

namespace tocsin {

void SingleNode::Describe(Loop&, Done<ClusterReport> done) {
  ClusterReport report{.store = store_,
                       .node = self_.id,
                       .members = {{.member = self_, .self = true, .groups = kGroups, .slots = {}}},
                       .lost = {},
                       .groups = {},
                       .coordinator = {.kind = "local", .connected = true, .state = "connected"},
                       .servers = {}};
  if (clock_ != nullptr) report.members[0].member.heard = clock_->Now().utc;
  for (uint32_t group = 0; group < kGroups; ++group) {
    report.groups.push_back(
        {.group = group, .mine = true, .owner = self_.id, .epoch = {}, .slots = {}, .next_due = {}});
  }
  done(std::move(report));
}

}  // namespace tocsin
