// `tocsin alerts`: what fires, what is about to, and what is over.
#include <algorithm>

#include "cli/text/human.h"
#include "cli/verbs/verb_command.h"
#include "cli/verbs/view.h"

namespace tocsin::cli {
namespace {

/// "for 5m", "2m, until 20m ago"
std::string WhenOf(const json::object& alert, Time now) {
  const Time starts = FromMs(IntegerOf(alert, "starts_ms"));
  const int64_t ends_ms = IntegerOf(alert, "ends_ms");
  if (TextOf(alert, "state") != "resolved") return "for " + ShowDuration(std::max(now - starts, Millis(0)));
  return fmt::format("{}, until {}", ShowDuration(FromMs(ends_ms) - starts), ShowDistance(FromMs(ends_ms), now));
}

Result<int> RunAlerts(Context& context, const Arguments&) {
  TOCSIN_ASSIGN(const json::object answer, context.api.Get("/v1/alerts"));
  Output& out = context.out;
  const Time now = out.json() ? Time{} : ServerNow(context);
  Table table({"STATE", "RULE", "SEVERITY", "ABOUT", "WHEN", "SUMMARY"});
  bool firing = false;
  for (const json::object& alert : ObjectsOf(answer, "alerts")) {
    const std::string state = TextOf(alert, "state");
    const json::object& labels = ObjectOf(alert, "labels");
    firing = firing || state == "firing";
    if (out.json()) {
      out.Json(alert);
      continue;
    }
    std::string about = TextOf(alert, "topic");
    if (about.empty()) about = TextOf(alert, "node");
    if (about.empty()) about = TextOf(labels, "instance");
    table.Row({Printable(state), Printable(TextOf(alert, "rule")), Printable(TextOf(labels, "severity")),
               Printable(about), WhenOf(alert, now), Printable(TextOf(alert, "summary"))});
  }
  if (!out.json()) table.Print(out, "no alert fires, and none did within the hour\n");
  if (const int64_t more = IntegerOf(answer, "left_out"); more > 0) {
    PrintStderr("tocsin: {} more conditions are true than the server lists\n", more);
  }
  return firing ? kExitNo : kExitOk;
}

}  // namespace

Command Alerts() {
  return VerbCommand("alerts",
                     {.details = "Alerts that fire come first, then those whose condition has to last a little longer, "
                                 "then those that are over. The server posts them to alerts.webhook_url, too.",
                      .examples = {{"alerts", "what is wrong, and since when"},
                                   {"alerts --json", "an alert a line, with its labels and its fingerprint"}},
                      .no = "an alert fires",
                      .run = RunAlerts});
}

}  // namespace tocsin::cli
