// What a node knows of the cluster, in the names of HTTP.
#include <optional>

#include "frontend/resp/encode.h"

namespace tocsin::resp {
namespace {

void WriteText(Writer& writer, std::string_view name, std::string_view text) {
  writer.Bulk(name);
  writer.Bulk(text);
}

void WriteNumber(Writer& writer, std::string_view name, std::optional<int64_t> value) {
  writer.Bulk(name);
  value ? writer.Integer(*value) : writer.Null();
}

std::optional<int64_t> Signed(std::optional<uint64_t> value) {
  return value ? std::optional(static_cast<int64_t>(*value)) : std::nullopt;
}

void WriteFlag(Writer& writer, std::string_view name, bool value) {
  writer.Bulk(name);
  writer.Bool(value);
}

void WriteMember(Writer& writer, const ClusterMember& each) {
  writer.Map(8);
  WriteText(writer, "id", each.member.id);
  WriteText(writer, "http", each.member.http);
  WriteText(writer, "resp", each.member.resp);
  WriteNumber(writer, "joined_ms", ToMs(each.member.joined));
  WriteNumber(writer, "heard_ms", ToMs(each.member.heard));
  WriteNumber(writer, "groups", each.groups);
  WriteNumber(writer, "slots", Signed(each.slots));
  WriteFlag(writer, "self", each.self);
}

void WriteGroup(Writer& writer, const GroupState& each) {
  writer.Map(5);
  WriteNumber(writer, "group", each.group);
  writer.Bulk("owner");
  each.owner.empty() ? writer.Null() : writer.Bulk(each.owner);
  WriteNumber(writer, "epoch", Signed(each.epoch));
  WriteNumber(writer, "slots", Signed(each.slots));
  WriteNumber(writer, "next_due_ms", each.next_due ? std::optional(ToMs(*each.next_due)) : std::nullopt);
}

void WriteServer(Writer& writer, const StoreServer& each) {
  writer.Map(5);
  WriteText(writer, "endpoint", each.endpoint);
  WriteText(writer, "role", each.role);
  WriteFlag(writer, "connected", each.connected);
  WriteText(writer, "state", each.state);
  WriteNumber(writer, "round_trip_ms", each.round_trip.count());
}

template <class Items, class Write>
void WriteArray(Writer& writer, std::string_view name, const Items& items, Write write) {
  writer.Bulk(name);
  writer.Array(items.size());
  for (const auto& item : items) write(writer, item);
}

}  // namespace

void WriteCluster(Writer& writer, const ClusterReport& report) {
  writer.Map(6);
  WriteText(writer, "store", report.store);
  WriteText(writer, "node", report.node);
  WriteArray(writer, "members", report.members, WriteMember);
  WriteArray(writer, "groups", report.groups, WriteGroup);
  writer.Bulk("coordinator");
  writer.Map(3);
  WriteText(writer, "kind", report.coordinator.kind);
  WriteFlag(writer, "connected", report.coordinator.connected);
  WriteText(writer, "state", report.coordinator.state);
  WriteArray(writer, "servers", report.servers, WriteServer);
}

}  // namespace tocsin::resp
