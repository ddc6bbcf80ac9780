#include <fstream>

#include <unistd.h>

#include "core/figures.h"
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

constexpr std::string_view kSections[] = {"server", "totals", "lateness", "conservation"};

struct Facts {
  std::string version;
  int64_t now_ms = 0;
  int64_t uptime_ms = 0;
  size_t shards = 0;
  size_t connections = 0;
  size_t parked = 0;
  uint64_t connected = 0;  // RESP connections so far
  uint64_t answered = 0;
};

/// The resident memory of this process; 0 if the system does not tell.
size_t ResidentBytes() {
  size_t pages = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

/// Redis's words beside our own: some clients look at them before they say anything else, and redis-cli --stat shows
/// them.
std::string ServerText(const Facts& facts) {
  return fmt::format(
      "# server\r\ntocsin_version:{}\r\nredis_mode:standalone\r\nrole:master\r\nloading:0\r\nnow_ms:{}\r\n"
      "uptime_ms:{}\r\nuptime_in_seconds:{}\r\nshards:{}\r\nconnections:{}\r\nconnected_clients:{}\r\n"
      "blocked_clients:{}\r\nused_memory:{}\r\ntotal_connections_received:{}\r\ntotal_commands_processed:{}\r\n",
      facts.version, facts.now_ms, facts.uptime_ms, facts.uptime_ms / 1000, facts.shards, facts.connections,
      facts.connections, facts.parked, ResidentBytes(), facts.connected, facts.answered);
}

void AddTopics(std::string& text, const Report& report, bool totals_wanted, bool lateness_wanted,
               bool conservation_wanted) {
  TopicFigures totals;
  for (const TopicReport& topic : report.topics) Add(totals, topic.figures);
  const auto out = std::back_inserter(text);
  const auto begin = [&] { text += text.empty() ? "" : "\r\n"; };  // an empty line between two sections
  if (totals_wanted) {
    begin();
    fmt::format_to(out, "# totals\r\ntopics:{}\r\n", report.topics.size());
    for (const FigureColumn& column : kFigureColumns) {
      fmt::format_to(out, "totals_{}:{}\r\n", column.name, totals.*column.value);
    }
  }
  if (lateness_wanted) {
    begin();
    const Lateness& lateness = report.lateness;
    fmt::format_to(out,
                   "# lateness\r\nlateness_ms_count:{}\r\nlateness_ms_p50:{:.3f}\r\nlateness_ms_p99:{:.3f}\r\n"
                   "lateness_ms_p999:{:.3f}\r\nlateness_ms_max:{:.3f}\r\n",
                   lateness.count, lateness.p50 * 1e3, lateness.p99 * 1e3, lateness.p999 * 1e3, lateness.max * 1e3);
  }
  if (conservation_wanted) {
    begin();
    const uint64_t in = totals.recovered + totals.accepted;
    const int64_t difference = ConservationDifference(totals);
    fmt::format_to(out, "# conservation\r\nconservation_in:{}\r\nconservation_out:{}\r\nconservation_difference:{}\r\n",
                   in, static_cast<int64_t>(in) - difference, difference);
  }
}

bool Wants(const Call& call, std::string_view section) {
  if (call.args.empty()) return true;
  return std::ranges::any_of(call.args, [&](std::string_view word) {
    return SameWord(word, section) || SameWord(word, "all") || SameWord(word, "everything") ||
           SameWord(word, "default");
  });
}

void Run(Call& call) {
  const Context& context = call.session.server().context();
  const auto uptime = context.clock.IoNow() - context.node.started;
  std::string text;
  if (Wants(call, kSections[0])) {
    text = ServerText({.version = context.node.version,
                       .now_ms = ToMs(context.clock.Now().utc),
                       .uptime_ms = std::chrono::duration_cast<Millis>(uptime).count(),
                       .shards = context.node.shards,
                       .connections = context.node.connections->load(std::memory_order_relaxed),
                       .parked = call.session.server().parked(),
                       .connected = context.connection_ids->load(std::memory_order_relaxed),
                       .answered = call.session.server().CommandsAnswered()});
  }
  const bool totals = Wants(call, kSections[1]);
  const bool lateness = Wants(call, kSections[2]);
  const bool conservation = Wants(call, kSections[3]);
  // What all topics hold is for those who may see all topics.
  const auth::Grant* const grant = call.session.grant();
  const bool all =
      call.session.server().tokens() == nullptr || (grant != nullptr && grant->AllowsAll(auth::Scope::kAdmin));
  if (!all || !(totals || lateness || conservation)) return Reply(call).Text(text);
  context.service.Topics(
      LoopOf(call), "",
      call.session.pipeline().Hold(call).Then(
          [text = std::move(text), totals, lateness, conservation](Answer& answer, Result<Report> result) mutable {
            if (!result) return answer.Fail(result.error());
            AddTopics(text, *result, totals, lateness, conservation);
            answer.writer().Text(text);
            answer.Done();
          }));
}

}  // namespace

const Command kInfo = {
    .name = "INFO",
    .syntax = "[server|totals|lateness|conservation ...]",
    .summary = "Shows the server and, to those who may see all topics, its figures.",
    .args_max = 8,
    .holds = true,
    .run = Run,
};

}  // namespace tocsin::resp
