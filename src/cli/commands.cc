#include "cli/commands.h"

#include <algorithm>
#include <deque>

#include "api/verbs.h"
#include "cli/text/human.h"
#include "cli/verbs/verb_command.h"
#include "cli/verbs/view.h"

namespace tocsin::cli {
namespace {

constexpr std::string_view kNoJob = "the job is in flight, finished or unknown";
constexpr std::string_view kNoTopic = "there is no such topic";
constexpr std::string_view kNoTopicOrNo = "there is no such topic, or the question was answered with no";
constexpr std::string_view kStale =
    "a delivery token is stale: its lease is over, or the job was settled already; or there is no such topic";

Group Jobs() {
  return {
      "Jobs",
      {
          Submit(),
          VerbCommand("get",
                      {.details = "Done and cancelled jobs can be seen as long as the topic's retention says.",
                       .examples = {{"get orders order-17", "its state, when it is due, what it carries"}},
                       .no = "no such job is stored, or there is no such topic",
                       .print = [](Context& context, const Arguments&,
                                   const json::object& job) { PrintJob(context.out, job, ServerNow(context)); }}),
          List(),
          TallyJobs(),
          VerbCommand("amend",
                      {.examples = {{"amend orders order-17 --in 2h", "two hours from now instead"},
                                    {"amend orders order-17 \"pay at once\"", "another payload, due as before"}},
                       .no = kNoJob}),
          VerbCommand("fire", {.examples = {{"fire orders order-17", "no need to wait any longer"}}, .no = kNoJob}),
          VerbCommand("count",
                      {.details = "An event that was counted before does not count again, so a call can be repeated.",
                       .examples = {{"count votes poll-7 --event vote-ann", "one of the votes that poll-7 waits for"}},
                       .no = "the job does not wait for events, is finished or unknown",
                       .done = "events still to come: {left}"}),
          VerbCommand("cancel",
                      {.details = "After the answer cancelled the job is never delivered, and that is safe on disk.",
                       .examples = {{"cancel orders order-17", "the order was paid: no need to remind anybody"}},
                       .no = kNoJob}),
      }};
}

Group Delivery() {
  return {
      "Delivery",
      {
          WorkerRow(),
          Reserve(),
          VerbCommand("ack", {.examples = {{"ack demo AAABAAAAAAAAAAEAAAAAAQAA",
                                            "after the answer ok the job is never delivered again"}},
                              .no = kStale,
                              .list = "results"}),
          VerbCommand("nack", {.details = "Uses up an attempt; if none is left the job becomes a dead letter.",
                               .examples = {{"nack demo AAABAAAAAAAAAAEAAAAAAQAA --in 5m --reason \"the bank is away\"",
                                             "try again in five minutes"},
                                            {"nack demo AAABAAAAAAAAAAEAAAAAAQAA --dead --reason \"no such account\"",
                                             "nobody tries it again until it is redriven"}},
                               .no = kStale,
                               .list = "results"}),
          VerbCommand("extend", {.examples = {{"extend demo AAABAAAAAAAAAAEAAAAAAQAA --lease 10m",
                                               "ten more minutes for a slow job"}},
                                 .no = kStale,
                                 .list = "results"}),
          Leases(),
          LeaseRevoke(),
      }};
}

Group Topics() {
  return {
      "Topics",
      {
          VerbCommand("topics",
                      {.examples = {{"topics", "a line for each topic"}}, .list = "topics", .print = PrintTopics}),
          VerbCommand("topic get",
                      {.examples = {{"topic get orders", "its leases, attempts and limits, and its figures"}},
                       .no = kNoTopic,
                       .print = PrintTopic}),
          VerbCommand("topic set",
                      {.examples = {{"topic set orders --lease 1m --attempts 5", "slow consumers, and few attempts"},
                                    {"topic set orders --capacity-bytes 64MiB", "submits are refused beyond that"},
                                    {"topic set orders --sink webhook --url https://shop.example/hook --secret orders",
                                     "the server posts due jobs there, signed with its secret of that name"},
                                    {"topic set orders --sink pull", "consumers reserve them again"}},
                       .no = "it contradicts what is stored, such as another number of slots",
                       .print = PrintTopic}),
          VerbCommand("topic test", {.details = "Works while the topic is paused, too.",
                                     .examples = {{"topic test orders", "whether the webhook of orders answers"}},
                                     .no = "the receiver did not confirm the probe, the topic does not push, or there "
                                           "is no such topic"}),
          VerbCommand("topic pause", {.details = "Jobs are accepted, become due, and wait.",
                                      .examples = {{"topic pause orders", "while the database is being moved"}},
                                      .no = kNoTopic,
                                      .done = "{TOPIC} is paused: nothing is delivered until tocsin topic resume"}),
          VerbCommand("topic resume", {.examples = {{"topic resume orders", "jobs that became due leave at once"}},
                                       .no = kNoTopic,
                                       .done = "{TOPIC} delivers again"}),
          VerbCommand("topic purge", {.details = "Asks first, on a terminal.",
                                      .examples = {{"topic purge orders --yes", "the jobs are gone for good"}},
                                      .no = kNoTopicOrNo,
                                      .question = "Remove all scheduled and dead jobs of {}?",
                                      .done = "{purged|job is|jobs are} removed; those that consumers have stay"}),
          VerbCommand("topic drop", {.details = "Asks first, on a terminal.",
                                     .examples = {{"topic drop orders --yes", "jobs, settings and figures are gone"}},
                                     .no = kNoTopicOrNo,
                                     .question = "Remove {} with all its jobs?"}),
      }};
}

Group DeadLetters() {
  return {"Dead letters",
          {
              DeadList(),
              DeadRedrive(),
              DeadRemove(),
              VerbCommand("dead purge", {.details = "Asks first, on a terminal.",
                                         .examples = {{"dead purge orders --yes", "they are gone for good"}},
                                         .no = kNoTopicOrNo,
                                         .question = "Remove all dead letters of {}?",
                                         .done = "{purged|dead letter is|dead letters are} removed"}),
          }};
}

Group ManyJobs() {
  return {"Many jobs",
          {Operate(), Operations(), ShowOperation(),
           VerbCommand("operation stop", {.examples = {{"operation stop orders k3f7p-12", "it changes no further job"}},
                                          .no = "there is no such operation or topic"})}};
}

Group Server() {
  return {
      "Server",
      {
          Stats(),
          Cluster(),
          Alerts(),
          Watch(),
          Load(),
          VerbCommand("health",
                      {.details = "Needs no access token. For the health check of a container.",
                       .examples = {{"health --timeout 2s", "exit status 0: it answers; 3: it does not, within 2 s"}},
                       .print = [](Context& context, const Arguments&,
                                   const json::object&) { context.out.Print("the server answers\n"); }}),
          VerbCommand("clock advance",
                      {.details = "When it answers, all jobs that became due can be reserved.",
                       .examples = {{"clock advance --by 30d", "thirty days later, in a second"},
                                    {"clock advance --to 2027-03-01T00:00Z", "the first of March"}},
                       .no = "the server's clock is the real one: only that of tocsind --clock virtual can be moved",
                       .print =
                           [](Context& context, const Arguments&, const json::object& answer) {
                             context.out.Print("it is {} now\n", ShowMoment(FromMs(IntegerOf(answer, "now_ms"))));
                           }}),
      }};
}

/// Adds the verbs of the API that have no row above, each to the group of its family.
void AddOtherVerbs(std::vector<Group>& groups) {
  for (const api::Verb& verb : api::Verbs()) {
    if (verb.cli.empty() || FindCommand(groups, verb.cli) != nullptr) continue;
    const std::string_view family = verb.cli.substr(0, verb.cli.find(' '));
    const auto has_family = [&](const Group& group) {
      return std::ranges::any_of(group.commands, [&](const Command& one) { return one.name.starts_with(family); });
    };
    const auto group = std::ranges::find_if(groups, has_family);
    (group == groups.end() ? groups.front() : *group)
        .commands.push_back(VerbCommand(verb.cli, {.no = verb.HasId()      ? kNoJob
                                                         : verb.HasTopic() ? kNoTopic
                                                                           : ""}));
  }
}

std::vector<Group> MakeGroups() {
  std::vector<Group> groups{
      Jobs(),
      Delivery(),
      Topics(),
      DeadLetters(),
      ManyJobs(),
      Server(),
      {"Transfer", {Export(), Import()}},
      {"Access tokens", {TokenCreate(), TokenList(), TokenRevoke()}},
      {"MySQL", {MysqlSchema(), MysqlMigrate(), MysqlCheck()}},
      {"Offline", {Demo(), JournalVerify(), JournalRepair(), Docs()}},
  };
  AddOtherVerbs(groups);
  return groups;
}

}  // namespace

Time ServerNow(Context& context) {
  const auto stats = context.api.Get("/v1/stats");
  const int64_t now_ms = stats ? IntegerOf(*stats, "now_ms") : 0;
  return now_ms > 0 ? FromMs(now_ms) : context.clock.Now().utc;
}

std::span<const Group> Groups() {
  static const std::vector<Group> groups = MakeGroups();
  return groups;
}

std::span<const Flag> GlobalFlags() {
  static const std::vector<Flag> flags{
      {.name = "server",
       .doc = "Where the server is: http://HOST:PORT, or https://HOST:PORT for TLS.",
       .fallback = "http://127.0.0.1:7420",
       .value = "URL",
       .variable = "TOCSIN_SERVER"},
      {.name = "token-file",
       .doc = "File that holds the access token, for a server that needs one. TOCSIN_TOKEN may hold the access token "
              "itself. The flag wins over TOCSIN_TOKEN_FILE, and that over TOCSIN_TOKEN.",
       .value = "FILE",
       .variable = "TOCSIN_TOKEN_FILE"},
      {.name = "ca",
       .doc = "With https://: file of the authorities (PEM) that may have signed the server's certificate. Default: "
              "the system's.",
       .value = "FILE",
       .variable = "TOCSIN_CA"},
      {.name = "cert",
       .doc = "With https://: file of your own certificate (PEM), if the server asks for one.",
       .value = "FILE",
       .variable = "TOCSIN_CERT"},
      {.name = "cert-key", .doc = "File of the key of --cert.", .value = "FILE", .variable = "TOCSIN_CERT_KEY"},
      {.name = "insecure",
       .kind = Kind::kSwitch,
       .doc = "With https://: do not check the server's certificate. Anybody may be the server then."},
      {"timeout", Kind::kDuration, "How long the server may take to answer, in addition to --wait.", "30s"},
      {"json", Kind::kSwitch, "Print JSON as the server sends it, one object a line."},
  };
  return flags;
}

int ExitStatusOf(Code code) {
  if (code == Code::kInvalidArgument || code == Code::kUnknownField || code == Code::kTooLarge) return kExitUsage;
  const bool no = code == Code::kNotFound || code == Code::kTopicNotFound || code == Code::kConflict;
  return no ? kExitNo : kExitCannotRun;
}

std::string_view Keep(std::string text) {
  static std::deque<std::string> kept;  // its texts stay where they are while it grows
  return kept.emplace_back(std::move(text));
}

}  // namespace tocsin::cli
