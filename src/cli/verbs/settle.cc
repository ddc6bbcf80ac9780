#include "cli/verbs/settle.h"

#include <algorithm>

#include "cli/verbs/parts.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

std::string_view ExplanationOf(std::string_view outcome) {
  if (outcome == "stale") return ": not the token of the current lease; nothing changed";
  if (outcome == "dead") return ": no attempt is left; it is a dead letter now";
  if (outcome == "overloaded") return ": nothing was done; try again";
  return "";
}

json::object TokensOf(const Arguments& arguments) {
  json::array tokens;
  for (const std::string& token : arguments.All("TOKEN")) tokens.emplace_back(token);
  return {{"tokens", std::move(tokens)}};
}

Result<int> SettleAndPrint(Context& context, const Arguments& arguments, std::string_view verb,
                           const json::object& body) {
  const auto results = Settle(context, *arguments.Text("TOPIC"), verb, body);
  if (!results) return std::unexpected(results.error());
  for (const json::value& result : *results) {
    if (!result.is_object()) continue;
    if (context.out.json()) {
      context.out.Json(result);
      continue;
    }
    const std::string outcome = Printable(TextOf(result.get_object(), "outcome"));
    context.out.Print("{} {}{}\n", Printable(TextOf(result.get_object(), "token")),
                      context.out.Paint(outcome == "ok" ? Colour::kGreen : Colour::kYellow, outcome),
                      ExplanationOf(outcome));
  }
  return StatusOf(*results);
}

Result<int> RunAck(Context& context, const Arguments& arguments) {
  return SettleAndPrint(context, arguments, "ack", TokensOf(arguments));
}

Result<int> RunNack(Context& context, const Arguments& arguments) {
  json::object body = TokensOf(arguments);
  if (const auto delay = arguments.Duration("in")) body["delay_ms"] = delay->count();
  if (const auto reason = arguments.Text("reason")) body["reason"] = *reason;
  if (arguments.Has("dead")) body["dead"] = true;
  return SettleAndPrint(context, arguments, "nack", body);
}

Result<int> RunExtend(Context& context, const Arguments& arguments) {
  json::object body = TokensOf(arguments);
  if (const auto lease = arguments.Duration("lease")) body["lease_ms"] = lease->count();
  return SettleAndPrint(context, arguments, "extend", body);
}

constexpr Positional kTokens{.name = "TOKEN", .doc = "Tokens that reserve printed.", .repeated = true};
constexpr std::string_view kStale = "a token is stale: its lease is over, or the job was settled already";

}  // namespace

Result<json::array> Settle(Context& context, const std::string& topic, std::string_view verb,
                           const json::object& body) {
  auto reply = context.api.Post(TopicPath(topic, fmt::format("/{}", verb)), body);
  if (!reply) return std::unexpected(std::move(reply).error());
  const json::array& results = ArrayOf(*reply, "results");
  if (const size_t tokens = ArrayOf(body, "tokens").size(); results.size() != tokens) {
    return Fail(Code::kInternal, "the server was told of {} tokens and answered for {}", tokens, results.size());
  }
  return results;
}

int StatusOf(const json::array& results) {
  int status = kExitOk;
  for (const json::value& result : results) {
    const std::string outcome = result.is_object() ? TextOf(result.get_object(), "outcome") : "";
    if (outcome == "stale") status = std::max(status, kExitNo);
    if (outcome == "overloaded") status = std::max(status, kExitCannotRun);
  }
  return status;
}

Command Ack() {
  return {
      .name = "ack",
      .summary = "ends deliveries: these jobs are done",
      .positionals = {kTopic, kTokens},
      .examples = {{"ack demo AAABAAAAAAAAAAEAAAAAAQAA", "after this answers ok, the job is never delivered again"}},
      .no = kStale,
      .run = RunAck,
  };
}

Command Nack() {
  return {
      .name = "nack",
      .summary = "gives jobs back, to be delivered again later",
      .details = "Uses up an attempt; where none is left the job becomes a dead letter.",
      .positionals = {kTopic, kTokens},
      .flags = {{.name = "in",
                 .kind = Kind::kDuration,
                 .value = "DURATION",
                 .doc = "Due again this long from now; the topic's back-off unless given."},
                {.name = "reason", .value = "TEXT", .doc = "Why; kept with the job."},
                {.name = "dead", .kind = Kind::kSwitch, .doc = "A dead letter at once, whatever attempts are left."}},
      .examples = {{"nack demo AAABAAAAAAAAAAEAAAAAAQAA --in 5m --reason \"no answer from the bank\"",
                    "try again in five minutes"},
                   {"nack demo AAABAAAAAAAAAAEAAAAAAQAA --dead --reason \"no such account\"",
                    "nobody tries it again until it is redriven"}},
      .no = kStale,
      .run = RunNack,
  };
}

Command Extend() {
  return {
      .name = "extend",
      .summary = "prolongs leases: they run anew from now",
      .positionals = {kTopic, kTokens},
      .flags = {{.name = "lease",
                 .kind = Kind::kDuration,
                 .value = "DURATION",
                 .doc = "How long from now; the topic's unless given."}},
      .examples = {{"extend demo AAABAAAAAAAAAAEAAAAAAQAA --lease 10m", "ten more minutes for a slow job"}},
      .no = kStale,
      .run = RunExtend,
  };
}

}  // namespace tocsin::cli
