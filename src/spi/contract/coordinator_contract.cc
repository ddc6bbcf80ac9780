#include "spi/contract/coordinator_contract.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace tocsin {

void CoordinatorContract::SetUp() {
  Result<std::unique_ptr<CoordinatorWorld>> world = GetParam()();
  if (!world && world.error().code == Code::kUnavailable) GTEST_SKIP() << world.error().message;
  ASSERT_TRUE(world) << world.error().message;
  world_ = std::move(*world);
}

CoordinatorContract::Node& CoordinatorContract::Join(const std::string& id) {
  Node& node = nodes_.emplace_back(Node{.id = id});
  if (world_->port() != 0) node.wire = std::make_unique<Wire>(world_->port());
  const uint16_t port = node.wire != nullptr ? node.wire->port() : 0;
  node.process = std::make_unique<MemberProcess>(Member{.id = id, .http = "http-of-" + id, .resp = "resp-of-" + id},
                                                 [this, port] { return world_->MakeSite(port); });
  return node;
}

std::vector<CoordinatorContract::Node*> CoordinatorContract::JoinAll(const Ids& ids) {
  std::vector<Node*> nodes;
  for (const std::string& id : ids) nodes.push_back(&Join(id));
  for (Node* node : nodes) EXPECT_TRUE(Sees(*node, ids));
  return nodes;
}

std::optional<CoordinatorContract::Report> CoordinatorContract::Await(Node& node,
                                                                      const std::function<bool(const Report&)>& fits,
                                                                      std::string_view what, Millis within) {
  std::string said;
  const TimePoint deadline = Now() + within;
  while (std::optional<Report> report = node->Next(deadline)) {
    if (fits(*report)) return report;
    said += "\n  " + report->text;
    if (report->kind == Report::Kind::kEnded) break;
  }
  ADD_FAILURE() << node.id << " was to say " << what << " within " << within.count() << " ms; it said:" << said;
  return std::nullopt;
}

std::optional<CoordinatorContract::Report> CoordinatorContract::Sees(Node& node, const Ids& ids, Millis within) {
  const auto fits = [&ids](const Report& report) {
    return report.kind == Report::Kind::kView && report.members.joined && IdsOf(report.members) == ids;
  };
  return Await(node, fits, fmt::format("that it is joined to [{}]", fmt::join(ids, ", ")), within);
}

std::optional<CoordinatorContract::Report> CoordinatorContract::Loses(Node& node, Millis within) {
  const auto fits = [](const Report& report) { return report.kind == Report::Kind::kView && !report.members.joined; };
  const std::optional<Report> report = Await(node, fits, "that it is not joined", within);
  if (report) EXPECT_FALSE(std::ranges::binary_search(report->members.members, node.id, {}, &Member::id));
  return report;
}

void CoordinatorContract::StaysQuiet(Node& node, Millis time) {
  const std::optional<Report> report = node->Next(Now() + time);
  EXPECT_FALSE(report) << node.id << " said " << report->text;
}

std::optional<CoordinatorContract::Report> CoordinatorContract::Refreshed(Node& node, Millis within) {
  node->Refresh();
  return Await(node, [](const Report& report) { return report.kind == Report::Kind::kView; }, "a view", within);
}

std::optional<CoordinatorContract::Report> CoordinatorContract::Left(Node& node, Millis within) {
  node->Leave();
  return Await(node, [](const Report& report) { return report.kind == Report::Kind::kLeft; }, "that it left", within);
}

CoordinatorContract::Ids CoordinatorContract::IdsOf(const Members& members) {
  Ids ids;
  for (const Member& member : members.members) ids.push_back(member.id);
  return ids;
}

}  // namespace tocsin
