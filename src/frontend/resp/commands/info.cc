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
};

/// Redis's words beside our own: some clients look at them before they say anything else.
std::string ServerText(const Facts& facts) {
  return fmt::format(
      "# server\r\ntocsin_version:{}\r\nredis_mode:standalone\r\nrole:master\r\nloading:0\r\nnow_ms:{}\r\n"
      "uptime_ms:{}\r\nuptime_in_seconds:{}\r\nshards:{}\r\nconnections:{}\r\n",
      facts.version, facts.now_ms, facts.uptime_ms, facts.uptime_ms / 1000, facts.shards, facts.connections);
}

std::string TopicsText(const Report& report, bool totals_wanted, bool lateness_wanted, bool conservation_wanted) {
  TopicFigures totals;
  for (const TopicReport& topic : report.topics) Add(totals, topic.figures);
  std::string text;
  const auto out = std::back_inserter(text);
  if (totals_wanted) {
    fmt::format_to(out, "\r\n# totals\r\ntopics:{}\r\n", report.topics.size());
    for (const FigureColumn& column : kFigureColumns) {
      fmt::format_to(out, "totals_{}:{}\r\n", column.name, totals.*column.value);
    }
  }
  if (lateness_wanted) {
    const Lateness& lateness = report.lateness;
    fmt::format_to(out,
                   "\r\n# lateness\r\nlateness_ms_count:{}\r\nlateness_ms_p50:{:.3f}\r\nlateness_ms_p99:{:.3f}\r\n"
                   "lateness_ms_p999:{:.3f}\r\nlateness_ms_max:{:.3f}\r\n",
                   lateness.count, lateness.p50 * 1e3, lateness.p99 * 1e3, lateness.p999 * 1e3, lateness.max * 1e3);
  }
  if (conservation_wanted) {
    const uint64_t in = totals.recovered + totals.accepted;
    const int64_t difference = ConservationDifference(totals);
    fmt::format_to(out,
                   "\r\n# conservation\r\nconservation_in:{}\r\nconservation_out:{}\r\nconservation_difference:{}\r\n",
                   in, static_cast<int64_t>(in) - difference, difference);
  }
  return text;
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
                       .connections = context.node.connections->load(std::memory_order_relaxed)});
  }
  const bool totals = Wants(call, kSections[1]);
  const bool lateness = Wants(call, kSections[2]);
  const bool conservation = Wants(call, kSections[3]);
  // What all topics hold is for those who may see all topics.
  const auth::Grant* const grant = call.session.grant();
  const bool all =
      call.session.server().tokens() == nullptr || (grant != nullptr && grant->AllowsAll(auth::Scope::kAdmin));
  if (!all || !(totals || lateness || conservation)) return Reply(call).Bulk(text);
  context.service.Topics(LoopOf(call), "",
                         [answer = call.session.pipeline().Hold(call), text = std::move(text), totals, lateness,
                          conservation](Result<Report> result) mutable {
                           if (!result) return answer.Fail(result.error());
                           answer.writer().Bulk(text + TopicsText(*result, totals, lateness, conservation));
                           answer.Done();
                         });
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
