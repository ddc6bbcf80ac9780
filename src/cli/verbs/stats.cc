#include <array>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/text/human_size.h"
#include "cli/text/human_time.h"
#include "cli/verbs/topic_view.h"
#include "cli/verbs/verb_command.h"

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
  if (balances) {
    out.Print("{}\n", out.Paint(Colour::kGreen, fmt::format("{} = {}: it balances", in, gone)));
  } else {
    out.Print("{}\n", out.Paint(Colour::kRed, fmt::format("{} and {}: it does not balance, the difference is {}", in,
                                                          gone, IntegerOf(conservation, "difference"))));
  }
}

Result<int> Run(Context& context, const Arguments&) {
  const auto reply = context.api.Get("/v1/stats");
  if (!reply) return std::unexpected(reply.error());
  const json::object& stats = *reply;
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
       .run = Run});
}

}  // namespace tocsin::cli
