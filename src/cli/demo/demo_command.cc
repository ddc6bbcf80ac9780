// `tocsin demo`: a shop's timeouts of a week, shown in a few seconds.
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/demo/demo_server.h"
#include "cli/process/stop_signal.h"

namespace tocsin::cli {
namespace {

constexpr Millis kReadingTime{250};  // for each line, on a terminal
constexpr Millis kPayWithin{30 * 60'000};
constexpr Millis kConfirmAfter{7LL * 24 * 3'600'000};

/// "00:30:00", "7 days 00:00:00"
std::string ClockText(Millis passed) {
  using std::chrono::duration_cast;
  const auto days = duration_cast<std::chrono::days>(passed);
  const std::chrono::hh_mm_ss<Millis> rest{passed - days};
  std::string text =
      fmt::format("{:02}:{:02}:{:02}", rest.hours().count(), rest.minutes().count(), rest.seconds().count());
  if (rest.subseconds().count() > 0) text += fmt::format(".{:03}", rest.subseconds().count());
  return days.count() > 0 ? fmt::format("day {} {}", days.count(), text) : text;
}

class Shop {
 public:
  Shop(Context& context, DemoServer& server) : context_(context), server_(server) {}

  Status Run() {
    TOCSIN_TRY(Begin());
    TOCSIN_TRY(OrdersComeIn());
    TOCSIN_TRY(SomeArePaid());
    TOCSIN_TRY(TheServerDies());
    TOCSIN_TRY(TheOthersRunOut());
    TOCSIN_TRY(AGroupBuy());
    TOCSIN_TRY(AWeekLater());
    return End();
  }

 private:
  Status Begin() {
    TOCSIN_TRY(server_.Start());
    auto now = NowMs();
    if (!now) return std::unexpected(std::move(now).error());
    start_ms_ = now_ms_ = *now;
    context_.out.Print("A shop and its timeouts, on a tocsind with a virtual clock.\n");
    context_.out.Print("{}\n", context_.out.Paint(Colour::kDim, "Its data is in " + server_.folder() + "."));
    return {};
  }

  Status OrdersComeIn() {
    TOCSIN_TRY(Heading("Five orders come in. Each must be paid within 30 minutes."));
    for (int i = 1; i <= 5; ++i) {
      const std::string id = fmt::format("order-{}", i);
      const auto job = Submit("orders", {{"id", id}, {"payload", "cancel " + id}, {"delay_ms", kPayWithin.count()}});
      if (!job) return std::unexpected(job.error());
      due_ms_ = IntegerOf(*job, "due_ms");
      TOCSIN_TRY(Line(fmt::format("{} is placed; its timeout is stored on disk", id)));
    }
    return {};
  }

  Status SomeArePaid() {
    TOCSIN_TRY(Heading("Two are paid in time. A cancel answers definitely."));
    TOCSIN_TRY(AdvanceTo(start_ms_ + 10 * 60'000));
    TOCSIN_TRY(Cancel("order-1", "cancelled", "it is paid, and its timeout will never fire"));
    return Cancel("order-2", "cancelled", "the same");
  }

  Status TheServerDies() {
    TOCSIN_TRY(Heading("The server is killed with kill -9, and started again."));
    server_.Kill();
    TOCSIN_TRY(Line(context_.out.Paint(Colour::kRed, "killed")));
    TOCSIN_TRY(server_.Start());
    return Line(context_.out.Paint(Colour::kGreen, "started again; " + server_.recovery()));
  }

  Status TheOthersRunOut() {
    TOCSIN_TRY(Heading("The other three are not paid. Nothing fires early, and nothing late."));
    TOCSIN_TRY(AdvanceTo(due_ms_ - 1));
    TOCSIN_TRY(Expect("orders", 0));
    TOCSIN_TRY(Line("a millisecond before the 30 minutes are over, no order is handed out"));
    TOCSIN_TRY(AdvanceTo(due_ms_));
    const auto jobs = Expect("orders", 3);
    if (!jobs) return std::unexpected(jobs.error());
    for (const json::object& job : *jobs) TOCSIN_TRY(Line(fmt::format("{} is handed to a worker", TextOf(job, "id"))));
    TOCSIN_TRY(Cancel(TextOf(jobs->front(), "id"), "in_flight", "paid too late: a worker has it already"));
    TOCSIN_TRY(Ack("orders", *jobs));
    return Line("the worker has cancelled the three orders, and acked their jobs");
  }

  Status AGroupBuy() {
    TOCSIN_TRY(Heading("A group buy: it is on when three customers have joined, or off after a day."));
    const auto job = Submit(
        "group-buys",
        {{"id", "lamp"}, {"payload", "lamps"}, {"trigger", "either"}, {"count", 3}, {"delay_ms", 24 * 3'600'000}});
    if (!job) return std::unexpected(job.error());
    for (const auto& [customer, outcome] : {std::pair("ann", "counted"), std::pair("ben", "counted"),
                                            std::pair("ben", "repeated"), std::pair("cem", "fired")}) {
      const auto reply = server_.api().Post(TopicPath("group-buys", "/jobs/lamp/count"), {{"event", customer}});
      if (!reply) return std::unexpected(reply.error());
      TOCSIN_TRY(Check(TextOf(*reply, "outcome"), outcome));
      TOCSIN_TRY(Line(fmt::format("{} joins: {}, {} to go", customer, outcome, IntegerOf(*reply, "left"))));
    }
    const auto jobs = Expect("group-buys", 1);
    if (!jobs) return std::unexpected(jobs.error());
    TOCSIN_TRY(Ack("group-buys", *jobs));
    return Line("the group is complete: the job was handed out at once, and only once");
  }

  Status AWeekLater() {
    TOCSIN_TRY(Heading("The two paid orders are shipped. Receipt counts as confirmed after seven days."));
    for (const std::string_view id : {"order-1", "order-2"}) {
      const auto job = Submit("receipts", {{"id", id}, {"payload", "confirm"}, {"delay_ms", kConfirmAfter.count()}});
      if (!job) return std::unexpected(job.error());
      due_ms_ = IntegerOf(*job, "due_ms");
    }
    TOCSIN_TRY(Line("order-1 and order-2 are shipped"));
    TOCSIN_TRY(AdvanceTo(due_ms_));
    const auto jobs = Expect("receipts", 2);
    if (!jobs) return std::unexpected(jobs.error());
    TOCSIN_TRY(Ack("receipts", *jobs));
    return Line("both receipts are confirmed");
  }

  Status End() {
    TOCSIN_TRY(Heading("Every job is accounted for."));
    const auto stats = server_.api().Get("/v1/stats");
    if (!stats) return std::unexpected(stats.error());
    const json::object& totals = ObjectOf(*stats, "totals");
    const json::object& sums = ObjectOf(*stats, "conservation");
    TOCSIN_TRY(Check(std::to_string(IntegerOf(sums, "difference", -1)), "0"));
    context_.out.Print(
        "  recovered {} + accepted {} = scheduled {} + leased {} + dead {} + acked {} + cancelled {} + purged {}\n",
        IntegerOf(totals, "recovered"), IntegerOf(totals, "accepted"), IntegerOf(totals, "scheduled"),
        IntegerOf(totals, "leased"), IntegerOf(totals, "dead"), IntegerOf(totals, "acked"),
        IntegerOf(totals, "cancelled"), IntegerOf(totals, "purged"));
    context_.out.Print("  {}\n",
                       context_.out.Paint(Colour::kDim, "(counted since the kill; recovered is what the disk held)"));
    TOCSIN_TRY(Check(std::to_string(server_.Stop()), "0"));
    context_.out.Print("\nThere is nothing to clean up: the server has ended, and {} is removed.\n", server_.folder());
    context_.out.Print("Start your own with: tocsind --clock virtual --data-dir ./try\n");
    return {};
  }

  Status Heading(std::string_view title) {
    context_.out.Print("\n{}\n", context_.out.Paint(Colour::kBold, title));
    return Pause();
  }

  Status Line(std::string_view text) {
    context_.out.Print("  {:>14}  {}\n", ClockText(Millis(now_ms_ - start_ms_)), text);
    return Pause();
  }

  /// Gives people time to read, on a terminal.
  Status Pause() {
    TOCSIN_TRY(context_.out.Flush());
    if (signal_.Wait(context_.out.terminal() ? kReadingTime : Millis(0))) {
      return Fail(Code::kShuttingDown, "interrupted; the server has ended, and {} is removed", server_.folder());
    }
    return {};
  }

  Result<int64_t> NowMs() {
    const auto stats = server_.api().Get("/v1/stats");
    if (!stats) return std::unexpected(stats.error());
    return IntegerOf(*stats, "now_ms");
  }

  /// The clock of a server that was killed is set back to the time of its last record.
  Status AdvanceTo(int64_t moment_ms) {
    const auto now = NowMs();
    if (!now) return std::unexpected(now.error());
    if (moment_ms > *now) {
      const auto reply = server_.api().Post("/v1/clock/advance", {{"ms", moment_ms - *now}});
      if (!reply) return std::unexpected(reply.error());
    }
    now_ms_ = moment_ms;
    return {};
  }

  Result<json::object> Submit(std::string_view topic, const json::object& job) {
    const auto reply = server_.api().Post(TopicPath(topic, "/jobs"), job);
    if (!reply) return std::unexpected(reply.error());
    const json::array& jobs = ArrayOf(*reply, "jobs");
    if (jobs.empty() || !jobs[0].is_object()) return Fail(Code::kInternal, "the answer has no job in it");
    return jobs[0].get_object();
  }

  Status Cancel(const std::string& id, std::string_view outcome, std::string_view what) {
    const auto reply = server_.api().Call("DELETE", TopicPath("orders", "/jobs/" + id));
    if (!reply) return std::unexpected(reply.error());
    TOCSIN_TRY(Check(TextOf(*reply, "outcome"), outcome));
    return Line(fmt::format("{}: cancel answers {}: {}", id, outcome, what));
  }

  /// Reserves all due jobs, which must be `count`.
  Result<std::vector<json::object>> Expect(std::string_view topic, size_t count) {
    const auto reply = server_.api().Post(TopicPath(topic, "/reserve"), {{"max", 100}});
    if (!reply) return std::unexpected(reply.error());
    std::vector<json::object> jobs;
    for (const json::value& job : ArrayOf(*reply, "jobs")) jobs.push_back(job.as_object());
    TOCSIN_TRY(Check(std::to_string(jobs.size()), std::to_string(count)));
    return jobs;
  }

  Status Ack(std::string_view topic, const std::vector<json::object>& jobs) {
    json::array tokens;
    for (const json::object& job : jobs) tokens.emplace_back(TextOf(job, "token"));
    const auto reply = server_.api().Post(TopicPath(topic, "/ack"), {{"tokens", tokens}});
    if (!reply) return std::unexpected(reply.error());
    for (const json::value& result : ArrayOf(*reply, "results")) {
      TOCSIN_TRY(Check(TextOf(result.as_object(), "outcome"), "ok"));
    }
    return {};
  }

  static Status Check(std::string_view got, std::string_view wanted) {
    if (got == wanted) return {};
    return Fail(Code::kInternal, "the server answered {} instead of {}: please report this", got, wanted);
  }

  Context& context_;
  DemoServer& server_;
  StopSignal signal_;
  int64_t start_ms_ = 0;
  int64_t now_ms_ = 0;
  int64_t due_ms_ = 0;
};

Result<int> Run(Context& context, const Arguments&) {
  const auto server = DemoServer::Make();
  if (!server) return std::unexpected(server.error());
  TOCSIN_TRY(Shop(context, **server).Run());
  return kExitOk;
}

}  // namespace

Command Demo() {
  return {.name = "demo",
          .summary = "shows what Tocsin does: a shop's timeouts, on a server of its own, in a few seconds",
          .details =
              "Starts the tocsind beside this program on free ports, with a virtual clock and a temporary folder, "
              "and removes both at the end. It does not touch a running server.",
          .examples = {{"demo", "no server needed"}},
          .no = "there is no tocsind beside this program",
          .run = Run};
}

}  // namespace tocsin::cli
