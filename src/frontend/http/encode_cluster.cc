// What a node knows of the cluster, as JSON.
#include <optional>

#include "frontend/http/encode.h"
#include "frontend/http/text.h"

namespace tocsin::http {
namespace {

/// `name` with the comma before it and the colon behind it.
void AppendName(std::string& out, std::string_view name) {
  if (out.back() != '{') out += ',';
  AppendString(out, name);
  out += ':';
}

/// What comes from other nodes and servers need not be UTF-8.
void AppendText(std::string& out, std::string_view name, std::string_view text) {
  AppendName(out, name);
  AppendString(out, IsUtf8(text) ? text : "not valid UTF-8");
}

void AppendNumber(std::string& out, std::string_view name, int64_t value) {
  AppendName(out, name);
  AppendInteger(out, value);
}

void AppendNumber(std::string& out, std::string_view name, std::optional<uint64_t> value) {
  if (value) return AppendNumber(out, name, static_cast<int64_t>(*value));
  AppendName(out, name);
  out += "null";
}

void AppendFlag(std::string& out, std::string_view name, bool value) {
  AppendName(out, name);
  out += value ? "true" : "false";
}

void AppendMember(std::string& out, const ClusterMember& each) {
  out += '{';
  AppendText(out, "id", each.member.id);
  AppendText(out, "http", each.member.http);
  AppendText(out, "resp", each.member.resp);
  AppendNumber(out, "joined_ms", ToMs(each.member.joined));
  AppendNumber(out, "heard_ms", ToMs(each.member.heard));
  AppendNumber(out, "groups", int64_t{each.groups});
  AppendNumber(out, "slots", each.slots);
  AppendFlag(out, "self", each.self);
  out += '}';
}

void AppendGroup(std::string& out, const GroupState& each) {
  out += '{';
  AppendNumber(out, "group", int64_t{each.group});
  if (each.owner.empty()) {
    AppendName(out, "owner");
    out += "null";
  } else {
    AppendText(out, "owner", each.owner);
  }
  AppendNumber(out, "epoch", each.epoch);
  AppendNumber(out, "slots", each.slots);
  std::optional<uint64_t> next_due;
  if (each.next_due) next_due = static_cast<uint64_t>(ToMs(*each.next_due));
  AppendNumber(out, "next_due_ms", next_due);
  out += '}';
}

void AppendServer(std::string& out, const StoreServer& each) {
  out += '{';
  AppendText(out, "endpoint", each.endpoint);
  AppendText(out, "role", each.role);
  AppendFlag(out, "connected", each.connected);
  AppendText(out, "state", each.state);
  AppendNumber(out, "round_trip_ms", each.round_trip.count());
  out += '}';
}

template <class Items, class Append>
void AppendArray(std::string& out, std::string_view name, const Items& items, Append append) {
  AppendName(out, name);
  out += '[';
  for (const auto& item : items) {
    if (out.back() != '[') out += ',';
    append(out, item);
  }
  out += ']';
}

}  // namespace

std::string EncodeCluster(const ClusterReport& report) {
  std::string out = "{";
  AppendText(out, "store", report.store);
  AppendText(out, "node", report.node);
  AppendArray(out, "members", report.members, AppendMember);
  AppendArray(out, "groups", report.groups, AppendGroup);
  AppendName(out, "coordinator");
  out += '{';
  AppendText(out, "kind", report.coordinator.kind);
  AppendFlag(out, "connected", report.coordinator.connected);
  AppendText(out, "state", report.coordinator.state);
  out += '}';
  AppendArray(out, "servers", report.servers, AppendServer);
  out += '}';
  return out;
}

}  // namespace tocsin::http
