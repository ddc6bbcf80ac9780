// `tocsin load`: how many jobs become due when, as bars.
#include <algorithm>
#include <cmath>
#include <ranges>

#include "cli/text/human.h"
#include "cli/verbs/verb_command.h"
#include "cli/verbs/view.h"
#include "model/load.h"

namespace tocsin::cli {
namespace {

using namespace std::chrono_literals;

constexpr Millis kDefaultLength = 1h;
constexpr int64_t kLinesMax = 60;  // unless --step asks for more
constexpr Millis kSteps[] = {1min, 2min, 5min, 10min, 15min, 30min, 1h, 2h, 3h, 6h, 12h, 24h, 48h, 168h};
constexpr size_t kBarWidth = 40;
constexpr std::string_view kShades = " .:-=+*#";  // from no job to the most

/// The shortest one that makes a picture of few lines.
Millis StepFor(Millis length) {
  for (const Millis step : kSteps) {
    if (length <= step * kLinesMax) return step;
  }
  const Millis longest = *std::ranges::rbegin(kSteps);
  return longest * (length / longest / kLinesMax + 1);
}

std::vector<int64_t> StepsOf(const json::object& load) {
  std::vector<int64_t> steps;
  for (const json::value& each : ArrayOf(load, "jobs")) steps.push_back(each.is_int64() ? each.get_int64() : 0);
  return steps;
}

/// `jobs` of `most`, on a scale of `full`. What is not zero is at least one.
size_t Scaled(int64_t jobs, int64_t most, size_t full) {
  if (jobs <= 0 || most <= 0) return 0;
  return std::max<size_t>(1, static_cast<size_t>(std::lround(static_cast<double>(full) * static_cast<double>(jobs) /
                                                             static_cast<double>(most))));
}

void PrintBars(Output& out, const json::object& load) {
  const std::vector<int64_t> steps = StepsOf(load);
  if (steps.empty()) return;
  const int64_t most = std::ranges::max(steps);
  const size_t digits = std::max<size_t>(4, std::to_string(most).size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const Time start = FromMs(IntegerOf(load, "from_ms") + static_cast<int64_t>(i) * IntegerOf(load, "step_ms"));
    std::string line = fmt::format("{} {:>{}}", ShowMoment(start), steps[i], digits);
    const std::string bar(Scaled(steps[i], most, kBarWidth), '#');
    if (!bar.empty()) line += " " + out.Paint(steps[i] == most ? Colour::kYellow : Colour::kGreen, bar);
    out.Print("{}\n", line);
  }
}

/// One character for each part of the time.
std::string Shape(const std::vector<int64_t>& steps) {
  const size_t width = std::min(steps.size(), kBarWidth);
  std::vector<int64_t> parts(width);
  for (size_t i = 0; i < steps.size(); ++i) parts[i * width / steps.size()] += steps[i];
  const int64_t most = parts.empty() ? 0 : std::ranges::max(parts);
  std::string shape;
  for (const int64_t part : parts) shape.push_back(kShades[Scaled(part, most, kShades.size() - 1)]);
  return shape;
}

void PrintTopicLoads(Output& out, const json::object& load) {
  Table table({"TOPIC", ">JOBS", ">DUE NOW", "WHEN"});
  for (const json::object& topic : ObjectsOf(load, "topics")) {
    table.Row({Printable(TextOf(topic, "topic")), std::to_string(IntegerOf(topic, "total")),
               std::to_string(IntegerOf(topic, "due")), Shape(StepsOf(topic))});
  }
  if (table.empty()) return;
  out.Write("\n");
  table.Print(out);
}

/// --from, --to and --step as the server takes them.
Result<std::string> QueryOf(Context& context, const Arguments& arguments) {
  if (arguments.Has("to") && arguments.Has("next")) {
    return Fail(Code::kInvalidArgument, "--to and --next contradict each other: give one of them");
  }
  const Time from = arguments.Has("from") ? FromMs(*arguments.Number("from")) : ServerNow(context);
  const Millis next = arguments.Has("next") ? Millis(*arguments.Number("next")) : kDefaultLength;
  const Time to = arguments.Has("to") ? FromMs(*arguments.Number("to")) : from + next;
  if (to <= from) return Fail(Code::kInvalidArgument, "--to is not after --from");
  const Millis step = arguments.Has("step") ? Millis(*arguments.Number("step")) : StepFor(to - from);
  std::string query;
  AppendQuery(query, "from", std::to_string(ToMs(from)));
  AppendQuery(query, "to", std::to_string(ToMs(to)));
  AppendQuery(query, "step", std::to_string(step.count()));
  return query;
}

Result<int> RunLoad(Context& context, const Arguments& arguments) {
  const auto topic = arguments.Text("TOPIC");
  TOCSIN_ASSIGN(std::string query, QueryOf(context, arguments));
  if (arguments.Has("by")) {
    if (topic) return Fail(Code::kInvalidArgument, "--by is for all topics: leave out TOPIC");
    AppendQuery(query, "by", *arguments.Text("by"));
  }
  TOCSIN_ASSIGN(const json::object load,
                context.api.Get((topic ? TopicPath(*topic) + "/load" : std::string("/v1/load")) + query));
  Output& out = context.out;
  if (out.json()) {
    out.Json(load);
    return kExitOk;
  }
  out.Print("{}: {} due from {} to {}, in steps of {}; due now: {}\n", topic ? Printable(*topic) : "all topics",
            Counted(IntegerOf(load, "total"), "job"), ShowMoment(FromMs(IntegerOf(load, "from_ms"))),
            ShowMoment(FromMs(IntegerOf(load, "to_ms"))), ExactDuration(Millis(IntegerOf(load, "step_ms"))),
            IntegerOf(load, "due"));
  PrintBars(out, load);
  PrintTopicLoads(out, load);
  return kExitOk;
}

}  // namespace

Command Load() {
  Command command = VerbCommand(
      "load",
      {.details = "Draws a bar for each step, as long as its number of jobs. The counts are exact. Without --step it "
                  "chooses one that makes about 60 lines.",
       .flags = {{"next", Kind::kDuration, "What becomes due in this time, counted from --from. Default: 1h."}},
       .examples = {{"load", "what all topics have to do in the next hour"},
                    {"load orders --next 24h --step 1m", "each minute of the next day"},
                    {"load --from \"2026-12-24 18:00\" --to \"2026-12-25 06:00\" --by topic",
                     "that night, with the ten largest topics"}},
       .no = "there is no such topic",
       .run = RunLoad});
  command.positionals.insert(command.positionals.begin(),
                             {.name = "TOPIC", .doc = "Name of the topic; all topics without it.", .required = false});
  return command;
}

}  // namespace tocsin::cli
