#include <algorithm>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/text/human_time.h"
#include "cli/verbs/verb_command.h"

namespace tocsin::cli {
namespace {

/// A number that the server does not know is null.
std::string NumberOf(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value == nullptr || value->is_null() ? "" : std::to_string(IntegerOf(object, name));
}

std::string DistanceOf(const json::object& object, std::string_view name, Time now) {
  return NumberOf(object, name).empty() ? "" : ShowDistance(FromMs(IntegerOf(object, name)), now);
}

/// The objects of an array.
std::vector<const json::object*> ObjectsOf(const json::object& object, std::string_view name) {
  std::vector<const json::object*> objects;
  for (const json::value& value : ArrayOf(object, name)) {
    if (value.is_object()) objects.push_back(&value.get_object());
  }
  return objects;
}

void PrintMembers(Output& out, const json::object& cluster, Time now) {
  Table table({"NODE", "HTTP", "RESP", "JOINED", "HEARD", ">GROUPS", ">SLOTS", ""});
  for (const json::object* member : ObjectsOf(cluster, "members")) {
    table.Row({Printable(TextOf(*member, "id")), Printable(TextOf(*member, "http")), Printable(TextOf(*member, "resp")),
               DistanceOf(*member, "joined_ms", now), DistanceOf(*member, "heard_ms", now), NumberOf(*member, "groups"),
               NumberOf(*member, "slots"), BoolOf(*member, "self") ? "this one" : ""});
  }
  table.Print(out);
}

void PrintServers(Output& out, const json::object& cluster) {
  Table table({"SERVER", "ROLE", ">ROUND TRIP", "STATE"});
  for (const json::object* server : ObjectsOf(cluster, "servers")) {
    table.Row({Printable(TextOf(*server, "endpoint")), Printable(TextOf(*server, "role")),
               BoolOf(*server, "connected") ? ShowDuration(Millis(IntegerOf(*server, "round_trip_ms"))) : "-",
               Printable(TextOf(*server, "state"))});
  }
  if (table.empty()) return;
  out.Write("\n");
  table.Print(out);
}

void PrintGroups(Output& out, const json::object& cluster, Time now) {
  Table table({">GROUP", "OWNER", ">EPOCH", ">SLOTS", "NEXT DUE"});
  for (const json::object* group : ObjectsOf(cluster, "groups")) {
    table.Row({NumberOf(*group, "group"), Printable(TextOf(*group, "owner")), NumberOf(*group, "epoch"),
               NumberOf(*group, "slots"), DistanceOf(*group, "next_due_ms", now)});
  }
  out.Write("\n");
  table.Print(out);
}

bool AllConnected(const json::object& cluster) {
  const auto connected = [](const json::object* part) { return BoolOf(*part, "connected"); };
  // The server knows the replicas of a Redis Cluster, but does not connect to them.
  const auto serves = [&](const json::object* server) {
    return connected(server) || TextOf(*server, "role") == "replica";
  };
  const auto self = [](const json::object* member) { return BoolOf(*member, "self"); };
  return connected(&ObjectOf(cluster, "coordinator")) && std::ranges::all_of(ObjectsOf(cluster, "servers"), serves) &&
         std::ranges::any_of(ObjectsOf(cluster, "members"), self);
}

Result<int> Run(Context& context, const Arguments& arguments) {
  const auto reply = context.api.Get("/v1/cluster");
  if (!reply) return std::unexpected(reply.error());
  const json::object& cluster = *reply;
  const int status = AllConnected(cluster) ? kExitOk : kExitNo;
  Output& out = context.out;
  if (out.json()) {
    out.Json(cluster);
    return status;
  }
  const Time now = ServerNow(context);
  const json::object& coordinator = ObjectOf(cluster, "coordinator");
  out.Print("store {}, coordination {}: {}\n\n", Printable(TextOf(cluster, "store")),
            Printable(TextOf(coordinator, "kind")),
            out.Paint(BoolOf(coordinator, "connected") ? Colour::kGreen : Colour::kRed,
                      Printable(TextOf(coordinator, "state"))));
  PrintMembers(out, cluster, now);
  PrintServers(out, cluster);
  if (arguments.Has("groups")) PrintGroups(out, cluster, now);
  return status;
}

}  // namespace

Command Cluster() {
  return VerbCommand(
      "cluster",
      {.details =
           "The slots are divided into 64 groups, each with one owner. Every node serves every job, whoever owns "
           "its group.",
       .flags = {{.name = "groups",
                  .kind = Kind::kSwitch,
                  .doc = "Also show each group's owner, epoch and next due time."}},
       .examples = {{"cluster", "which nodes there are, and whether Redis is reachable"},
                    {"cluster --groups", "which node owns which group"}},
       .no = "this node is not a member, or the coordinator or a server of the store cannot be reached",
       .run = Run});
}

}  // namespace tocsin::cli
