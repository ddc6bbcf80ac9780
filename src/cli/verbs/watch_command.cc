// `tocsin watch`: the topics and what happens in them, until it is stopped.
#include <array>
#include <map>
#include <thread>

#include <poll.h>

#include "cli/arguments.h"
#include "cli/process/process.h"
#include "cli/text/human.h"
#include "cli/verbs/view.h"

namespace tocsin::cli {
namespace {

constexpr Millis kIntervalMin{10};
constexpr Millis kIntervalMax = std::chrono::days(1);
constexpr std::string_view kFigures[] = {"scheduled", "ready", "leased", "dead"};
constexpr std::string_view kRates[] = {"accepted", "delivered", "acked"};

/// The topics at one moment.
struct Sample {
  std::chrono::steady_clock::time_point at;
  std::map<std::string, json::object> topics;
};

/// While it lives, a signal aborts the call under way. It leaves the signal for the caller to take.
class AbortOnSignal {
 public:
  AbortOnSignal(Api& api, const StopSignal& signal)
      : thread_([this, &api, fd = signal.fd()] {
          std::array<pollfd, 2> polls{pollfd{fd, POLLIN, 0}, pollfd{over_.get(), POLLIN, 0}};
          while (::poll(polls.data(), polls.size(), -1) < 0) {
          }
          if (polls[0].revents != 0) api.Abort();
        }) {}
  ~AbortOnSignal() { Signal(over_); }
  AbortOnSignal(const AbortOnSignal&) = delete;
  AbortOnSignal& operator=(const AbortOnSignal&) = delete;

 private:
  const Descriptor over_ = MakeEvent();
  const std::jthread thread_;
};

/// Takes the whole terminal while it lives, and gives it back as it was.
class Screen {
 public:
  explicit Screen(Output& out) : out_(out) { Switch("\x1b[?1049h\x1b[?25l"); }
  ~Screen() { Switch("\x1b[?25h\x1b[?1049l"); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

 private:
  void Switch(std::string_view sequence) {
    if (!out_.terminal() || out_.json()) return;
    out_.Write(sequence);
    (void)out_.Flush();  // if the terminal is gone, nobody can read the error
  }

  Output& out_;
};

Result<Sample> Fetch(Context& context, const std::vector<std::string>& names) {
  Sample sample;
  for (const std::string& name : names) {
    TOCSIN_ASSIGN(sample.topics[name], context.api.Get(TopicPath(name)));
  }
  if (names.empty()) {
    TOCSIN_ASSIGN(const json::object reply, context.api.Get("/v1/topics"));
    for (const json::object& topic : ObjectsOf(reply, "topics")) sample.topics[TextOf(topic, "topic")] = topic;
  }
  sample.at = context.clock.IoNow();
  return sample;
}

int64_t FigureOf(const json::object& topic, std::string_view name) {
  return IntegerOf(ObjectOf(topic, "figures"), name);
}

/// Per second since the sample before; nothing if there is none, or the server was restarted.
std::optional<double> RateOf(const Sample* before, const Sample& now, const std::string& topic, std::string_view name) {
  if (before == nullptr || !before->topics.contains(topic)) return std::nullopt;
  const int64_t change = FigureOf(now.topics.at(topic), name) - FigureOf(before->topics.at(topic), name);
  const double seconds = std::chrono::duration<double>(now.at - before->at).count();
  if (change < 0 || seconds <= 0) return std::nullopt;
  return static_cast<double>(change) / seconds;
}

std::string RateText(std::optional<double> rate) {
  if (!rate) return "-";
  return *rate > 0 && *rate < 10 ? fmt::format("{:.1f}", *rate) : fmt::format("{:.0f}", *rate);
}

json::object JsonOf(const Sample* before, const Sample& now, const std::string& name) {
  const json::object& topic = now.topics.at(name);
  json::object line{{"topic", name}};
  for (const std::string_view figure : kFigures) line[figure] = FigureOf(topic, figure);
  const json::value* const late = ObjectOf(topic, "lateness_ms").if_contains("p99");
  line["lateness_p99_ms"] = late != nullptr && late->is_number() ? *late : json::value(0);
  for (const std::string_view figure : kRates) {
    const auto rate = RateOf(before, now, name, figure);
    line[fmt::format("{}_per_s", figure)] = rate ? json::value(*rate) : json::value(nullptr);
  }
  return line;
}

void Draw(Output& out, const Sample* before, const Sample& now) {
  Table table(
      {"TOPIC", ">SCHEDULED", ">READY", ">LEASED", ">DEAD", ">LATE p99", ">ACCEPTED/s", ">DELIVERED/s", ">ACKED/s"});
  for (const auto& [name, topic] : now.topics) {
    const std::string late = LatenessOf(topic, "p99");
    std::vector<std::string> row{Printable(name)};
    for (const std::string_view figure : kFigures) row.push_back(std::to_string(FigureOf(topic, figure)));
    row.push_back(late.empty() ? "-" : late);
    for (const std::string_view figure : kRates) row.push_back(RateText(RateOf(before, now, name, figure)));
    table.Row(std::move(row));
  }
  table.Print(out, "no topics yet\n");
}

void Show(Context& context, const Sample* before, const Sample& now, Millis interval) {
  Output& out = context.out;
  if (out.json()) {
    for (const auto& [name, topic] : now.topics) out.Json(JsonOf(before, now, name));
    return;
  }
  if (out.terminal()) {
    out.Write("\x1b[H\x1b[J");
    out.Print("{}  every {}; Ctrl-C ends\n\n", context.api.url(), ExactDuration(interval));
  }
  Draw(out, before, now);
  if (!out.terminal()) out.Write("\n");
}

/// Below the table on a terminal; otherwise on stderr, so that a reader of the blocks does not see it.
void Complain(Output& out, const Error& error) {
  if (out.terminal() && !out.json()) {
    out.Print("{}\n", Printable(error.message));
  } else {
    PrintStderr("tocsin: {}\n", Printable(error.message));
  }
}

Result<int> Run(Context& context, const Arguments& arguments) {
  const std::vector<std::string> names = arguments.All("TOPIC");
  const Millis interval = *arguments.Duration("interval");
  const int64_t count = arguments.Number("count").value_or(0);
  if (interval < kIntervalMin || interval > kIntervalMax) {
    return Fail(Code::kInvalidArgument, "--interval: {} is not 10ms to 1d", ExactDuration(interval));
  }
  StopSignal signal;
  const AbortOnSignal abort_on_signal(context.api, signal);
  auto sample = Fetch(context, names);
  if (!sample && signal.Take()) return kExitOk;
  if (!sample) return std::unexpected(std::move(sample).error());
  const Screen screen(context.out);
  std::optional<Sample> before;
  for (int64_t shown = 1;; ++shown) {
    const bool seen = sample.has_value();
    if (seen) {
      Show(context, before ? &*before : nullptr, *sample, interval);
      before = *std::move(sample);
    } else {
      Complain(context.out, sample.error());
    }
    TOCSIN_TRY(context.out.Flush());
    if (shown == count || signal.Wait(interval)) return seen ? kExitOk : kExitCannotRun;
    sample = Fetch(context, names);
    if (!sample && signal.Take()) return seen ? kExitOk : kExitCannotRun;  // the signal aborted the call
  }
}

}  // namespace

Command Watch() {
  return {.name = "watch",
          .summary = "shows the topics and what happens in them, until it is stopped",
          .details =
              "On a terminal it redraws in place, otherwise it prints one block after the other. Rates are those "
              "since the block before. With --json it prints a line for each topic. It waits for a server that "
              "goes away; the exit status is 3 if the last look failed.",
          .positionals = {{"TOPIC", "Only these topics.", false, true}},
          .flags = {{"interval", Kind::kDuration, "The time between two blocks, up to 1d.", "1s"},
                    {"count", Kind::kNumber, "End after this many blocks."}},
          .examples = {{"watch", "all topics"}, {"watch orders mail --interval 5s", "two of them"}},
          .no = "there is no such topic",
          .run = Run};
}

}  // namespace tocsin::cli
