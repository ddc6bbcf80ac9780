// `tocsin stats` and `tocsin cluster`.
#include <algorithm>
#include <array>

#include "cli/text/human.h"
#include "cli/verbs/verb_command.h"
#include "cli/verbs/view.h"

namespace tocsin::cli {
namespace {

constexpr std::array<std::string_view, 2> kIn{"recovered", "accepted"};
constexpr std::array<std::string_view, 6> kOut{"scheduled", "leased", "dead", "acked", "cancelled", "purged"};

/// "recovered 0 + accepted 3"
std::string Sum(const json::object& totals, std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " + ", name, IntegerOf(totals, name));
  }
  return text;
}

/// Every job that ever came in is still stored, or counted where it left.
void PrintConservation(Output& out, const json::object& totals, const json::object& conservation, bool balances) {
  out.Print("\n{} = {}\n", Sum(totals, kIn), Sum(totals, kOut));
  const int64_t in = IntegerOf(conservation, "in");
  const int64_t gone = IntegerOf(conservation, "out");
  const std::string verdict = balances ? fmt::format("{} = {}: it balances", in, gone)
                                       : fmt::format("{} and {}: it does not balance, the difference is {}", in, gone,
                                                     IntegerOf(conservation, "difference"));
  out.Print("{}\n", out.Paint(balances ? Colour::kGreen : Colour::kRed, verdict));
}

Result<int> RunStats(Context& context, const Arguments&) {
  TOCSIN_ASSIGN(const json::object stats, context.api.Get("/v1/stats"));
  const json::object& conservation = ObjectOf(stats, "conservation");
  const bool balances = IntegerOf(conservation, "difference", 1) == 0;
  const int status = balances ? kExitOk : kExitNo;
  Output& out = context.out;
  if (out.json()) {
    out.Json(stats);
    return status;
  }
  out.Print("tocsind {} on {}, up {}; its clock shows {}\n", Printable(TextOf(stats, "version")), context.api.url(),
            ShowDuration(Millis(IntegerOf(stats, "uptime_ms"))), ShowMoment(FromMs(IntegerOf(stats, "now_ms"))));
  out.Print("shards {}, connections {}, topics {}\n\n", IntegerOf(stats, "shards"), IntegerOf(stats, "connections"),
            IntegerOf(stats, "topics"));
  const json::object& totals = ObjectOf(stats, "totals");
  for (const auto& figure : totals) {
    const int64_t value = IntegerOf(totals, figure.key());
    out.Print("{:<10} {:>12}\n", Printable(figure.key()),
              figure.key() == "bytes" ? ShowSize(value) : std::to_string(value));
  }
  if (const std::string p99 = LatenessOf(stats, "p99"); !p99.empty()) {
    out.Print("\nlateness: p50 {}, p99 {}, p99.9 {}, max {}\n", LatenessOf(stats, "p50"), p99,
              LatenessOf(stats, "p999"), LatenessOf(stats, "max"));
  }
  PrintConservation(out, totals, conservation, balances);
  return status;
}

/// A number that the server does not know is null.
std::string NumberOf(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value == nullptr || value->is_null() ? "" : std::to_string(IntegerOf(object, name));
}

std::string DistanceOf(const json::object& object, std::string_view name, Time now) {
  return NumberOf(object, name).empty() ? "" : ShowDistance(FromMs(IntegerOf(object, name)), now);
}

void PrintMembers(Output& out, const json::object& cluster, Time now) {
  Table table({"NODE", "HTTP", "RESP", "VERSION", "JOINED", "HEARD", ">GROUPS", ">SLOTS", ""});
  for (const json::object& member : ObjectsOf(cluster, "members")) {
    table.Row({Printable(TextOf(member, "id")), Printable(TextOf(member, "http")), Printable(TextOf(member, "resp")),
               Printable(TextOf(member, "version")), DistanceOf(member, "joined_ms", now),
               DistanceOf(member, "heard_ms", now), NumberOf(member, "groups"), NumberOf(member, "slots"),
               BoolOf(member, "self") ? "this one" : ""});
  }
  table.Print(out);
}

void PrintLost(Output& out, const json::object& cluster, Time now) {
  Table table({"LOST NODE", "HTTP", "RESP", "HEARD"});
  for (const json::object& member : ObjectsOf(cluster, "lost")) {
    table.Row({Printable(TextOf(member, "id")), Printable(TextOf(member, "http")), Printable(TextOf(member, "resp")),
               DistanceOf(member, "heard_ms", now)});
  }
  if (table.empty()) return;
  out.Write("\n");
  table.Print(out);
}

void PrintServers(Output& out, const json::object& cluster) {
  Table table({"SERVER", "ROLE", ">ROUND TRIP", "STATE"});
  for (const json::object& server : ObjectsOf(cluster, "servers")) {
    table.Row({Printable(TextOf(server, "endpoint")), Printable(TextOf(server, "role")),
               BoolOf(server, "connected") ? ShowDuration(Millis(IntegerOf(server, "round_trip_ms"))) : "-",
               Printable(TextOf(server, "state"))});
  }
  if (table.empty()) return;
  out.Write("\n");
  table.Print(out);
}

void PrintGroups(Output& out, const json::object& cluster, Time now) {
  Table table({">GROUP", "OWNER", ">EPOCH", ">SLOTS", "NEXT DUE"});
  for (const json::object& group : ObjectsOf(cluster, "groups")) {
    table.Row({NumberOf(group, "group"), Printable(TextOf(group, "owner")), NumberOf(group, "epoch"),
               NumberOf(group, "slots"), DistanceOf(group, "next_due_ms", now)});
  }
  out.Write("\n");
  table.Print(out);
}

bool AllConnected(const json::object& cluster) {
  // The server knows the replicas of a Redis Cluster, but does not connect to them.
  const auto serves = [](const json::object& server) {
    return BoolOf(server, "connected") || TextOf(server, "role") == "replica";
  };
  const auto self = [](const json::object& member) { return BoolOf(member, "self"); };
  return BoolOf(ObjectOf(cluster, "coordinator"), "connected") &&
         std::ranges::all_of(ObjectsOf(cluster, "servers"), serves) &&
         std::ranges::any_of(ObjectsOf(cluster, "members"), self);
}

Result<int> RunCluster(Context& context, const Arguments& arguments) {
  TOCSIN_ASSIGN(const json::object cluster, context.api.Get("/v1/cluster"));
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
  PrintLost(out, cluster, now);
  PrintServers(out, cluster);
  if (arguments.Has("groups")) PrintGroups(out, cluster, now);
  return status;
}

}  // namespace

Command Stats() {
  return VerbCommand(
      "stats",
      {.details =
           "Since the start, jobs recovered + accepted = scheduled + leased + dead + acked + cancelled + purged. "
           "The figures of several threads are read one after the other, so the sums may differ by a few while "
           "jobs move.",
       .examples = {{"stats", "what is where, and whether it balances"}},
       .no = "the figures do not balance",
       .run = RunStats});
}

Command Cluster() {
  return VerbCommand("cluster",
                     {.details = "The slots are divided into groups (64, or what redis.groups says), each with one "
                                 "owner. Every node serves every job, whoever owns "
                                 "its group. A lost node has vanished without leaving since this one was started; a "
                                 "node that starts again is another one.",
                      .flags = {{"groups", Kind::kSwitch, "Also show each group's owner, epoch and next due time."}},
                      .examples = {{"cluster", "which nodes there are, and whether Redis is reachable"},
                                   {"cluster --groups", "which node owns which group"}},
                      .no = "this node is not a member, or the coordinator or a server of the store cannot be reached",
                      .run = RunCluster});
}

}  // namespace tocsin::cli
