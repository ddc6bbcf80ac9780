// `tocsin demo`: a shop's timeouts of a week, shown in a few seconds.
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/process/process.h"
#include "cli/transport/api.h"

namespace tocsin::cli {
namespace {

constexpr Millis kStartTime{20'000};
constexpr Millis kAnswerTime{10'000};
constexpr Millis kReadingTime{250};  // for each line, on a terminal
constexpr Millis kPayWithin{30 * 60'000};
constexpr Millis kConfirmAfter{7LL * 24 * 3'600'000};

/// The text of a field in a line of the server's log.
std::string FieldOf(std::string_view line, std::string_view name) {
  const size_t at = line.find(fmt::format(" {}=", name));
  if (at == std::string_view::npos) return "";
  line.remove_prefix(at + name.size() + 2);
  return std::string(line.substr(0, line.find_first_of(" \n")));
}

/// The tocsind beside this program, with a virtual clock, free ports and a temporary folder. The destructor ends the
/// server and removes the folder.
class DemoServer {
 public:
  DemoServer(std::string program, std::string folder) : program_(std::move(program)), folder_(std::move(folder)) {}
  ~DemoServer() {
    process_.reset();
    std::error_code ignored;  // the folder then stays in the system's temporary folder
    std::filesystem::remove_all(folder_, ignored);
  }
  DemoServer(const DemoServer&) = delete;
  DemoServer& operator=(const DemoServer&) = delete;

  /// Starts it, and waits until it serves.
  Status Start() {
    const auto of_tocsin = [](std::string_view name) { return name.starts_with("TOCSIN_"); };
    const Program program{.words = {program_, "--clock", "virtual", "--data-dir", folder_ + "/data", "--http-listen",
                                    "127.0.0.1:0", "--resp-listen", "127.0.0.1:0", "--journal-segment-size", "8MiB",
                                    "--shards", "1", "--log-level", "error", "--log-audit-file", folder_ + "/audit"},
                          .environment = EnvironmentWithout(of_tocsin),
                          .pipe_out = true,
                          .pipe_err = true};
    TOCSIN_ASSIGN(Process process, Process::Start(program));
    process_.emplace(std::move(process));
    TOCSIN_ASSIGN(const std::string ready, AwaitReady());
    TOCSIN_ASSIGN(Endpoint endpoint, ParseEndpoint("http://" + FieldOf(ready, "http")));
    recovered_ = FieldOf(ready, "jobs_recovered");
    api_ = std::make_unique<Api>(std::move(endpoint), "", kAnswerTime);
    return {};
  }

  /// kill -9
  void Kill() { process_.reset(); }

  /// Ends it with SIGTERM; its exit status.
  int Stop() {
    process_->Kill(SIGTERM);
    const int status = process_->Wait();
    process_.reset();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  Api& api() { return *api_; }
  const std::string& folder() const { return folder_; }
  /// How many jobs it found at its start.
  const std::string& recovered() const { return recovered_; }

 private:
  /// The line of its log that says where it serves. What it logs later, errors alone, fits into the pipe.
  Result<std::string> AwaitReady() {
    std::string log;
    while (true) {
      const size_t ready = log.find(" ready http=");
      if (ready != std::string::npos && log.find('\n', ready) != std::string::npos) return log.substr(ready);
      pollfd poll{.fd = process_->err.get(), .events = POLLIN, .revents = 0};
      if (::poll(&poll, 1, static_cast<int>(kStartTime.count())) <= 0) {
        return Fail(Code::kTimedOut, "the server does not start");
      }
      std::array<char, 4096> part{};
      const ssize_t n = ::read(process_->err.get(), part.data(), part.size());
      if (n <= 0) return Fail(Code::kIo, "the server ended while it started: {}", log);
      log.append(part.data(), static_cast<size_t>(n));
    }
  }

  const std::string program_;
  const std::string folder_;
  std::optional<Process> process_;
  std::string recovered_;
  std::unique_ptr<Api> api_;
};

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
    TOCSIN_ASSIGN(start_ms_, NowMs());
    now_ms_ = start_ms_;
    context_.out.Print("A shop and its timeouts, on a tocsind with a virtual clock.\n");
    context_.out.Print("{}\n", context_.out.Paint(Colour::kDim, "Its data is in " + server_.folder() + "."));
    return {};
  }

  Status OrdersComeIn() {
    TOCSIN_TRY(Heading("Five orders come in. Each must be paid within 30 minutes."));
    for (int i = 1; i <= 5; ++i) {
      const std::string id = fmt::format("order-{}", i);
      TOCSIN_TRY(Submit("orders", {{"id", id}, {"payload", "cancel " + id}, {"delay_ms", kPayWithin.count()}}));
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
    return Line(context_.out.Paint(Colour::kGreen, "started again; jobs recovered: " + server_.recovered()));
  }

  Status TheOthersRunOut() {
    TOCSIN_TRY(Heading("The other three are not paid. Nothing fires early, and nothing late."));
    TOCSIN_TRY(AdvanceTo(due_ms_ - 1));
    TOCSIN_TRY(Expect("orders", 0));
    TOCSIN_TRY(Line("a millisecond before the 30 minutes are over, no order is handed out"));
    TOCSIN_TRY(AdvanceTo(due_ms_));
    TOCSIN_ASSIGN(const auto jobs, Expect("orders", 3));
    for (const json::object& job : jobs) TOCSIN_TRY(Line(fmt::format("{} is handed to a worker", TextOf(job, "id"))));
    TOCSIN_TRY(Cancel(TextOf(jobs.front(), "id"), "in_flight", "paid too late: a worker has it already"));
    TOCSIN_TRY(Ack("orders", jobs));
    return Line("the worker has cancelled the three orders, and acked their jobs");
  }

  Status AGroupBuy() {
    TOCSIN_TRY(Heading("A group buy: it is on when three customers have joined, or off after a day."));
    TOCSIN_TRY(Submit(
        "group-buys",
        {{"id", "lamp"}, {"payload", "lamps"}, {"trigger", "either"}, {"count", 3}, {"delay_ms", 24 * 3'600'000}}));
    for (const auto& [customer, outcome] : {std::pair("ann", "counted"), std::pair("ben", "counted"),
                                            std::pair("ben", "repeated"), std::pair("cem", "fired")}) {
      TOCSIN_ASSIGN(const json::object reply,
                    server_.api().Post(TopicPath("group-buys", "/jobs/lamp/count"), {{"event", customer}}));
      TOCSIN_TRY(Check(TextOf(reply, "outcome"), outcome));
      TOCSIN_TRY(Line(fmt::format("{} joins: {}, {} to go", customer, outcome, IntegerOf(reply, "left"))));
    }
    TOCSIN_ASSIGN(const auto jobs, Expect("group-buys", 1));
    TOCSIN_TRY(Ack("group-buys", jobs));
    return Line("the group is complete: the job was handed out at once, and only once");
  }

  Status AWeekLater() {
    TOCSIN_TRY(Heading("The two paid orders are shipped. Receipt counts as confirmed after seven days."));
    for (const std::string_view id : {"order-1", "order-2"}) {
      TOCSIN_TRY(Submit("receipts", {{"id", id}, {"payload", "confirm"}, {"delay_ms", kConfirmAfter.count()}}));
    }
    TOCSIN_TRY(Line("order-1 and order-2 are shipped"));
    TOCSIN_TRY(AdvanceTo(due_ms_));
    TOCSIN_ASSIGN(const auto jobs, Expect("receipts", 2));
    TOCSIN_TRY(Ack("receipts", jobs));
    return Line("both receipts are confirmed");
  }

  Status End() {
    TOCSIN_TRY(Heading("Every job is accounted for."));
    TOCSIN_ASSIGN(const json::object stats, server_.api().Get("/v1/stats"));
    const json::object& totals = ObjectOf(stats, "totals");
    TOCSIN_TRY(Check(std::to_string(IntegerOf(ObjectOf(stats, "conservation"), "difference", -1)), "0"));
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
    TOCSIN_ASSIGN(const json::object stats, server_.api().Get("/v1/stats"));
    return IntegerOf(stats, "now_ms");
  }

  /// The clock of a server that was killed is set back to the time of its last record.
  Status AdvanceTo(int64_t moment_ms) {
    TOCSIN_ASSIGN(const int64_t now, NowMs());
    if (moment_ms > now) TOCSIN_TRY(server_.api().Post("/v1/clock/advance", {{"ms", moment_ms - now}}));
    now_ms_ = moment_ms;
    return {};
  }

  Status Submit(std::string_view topic, const json::object& job) {
    TOCSIN_ASSIGN(const json::object reply, server_.api().Post(TopicPath(topic, "/jobs"), job));
    auto stored = ObjectsOf(reply, "jobs");
    if (stored.empty()) return Fail(Code::kInternal, "the answer has no job in it");
    due_ms_ = IntegerOf(stored.front(), "due_ms");
    return {};
  }

  Status Cancel(const std::string& id, std::string_view outcome, std::string_view what) {
    TOCSIN_ASSIGN(const json::object reply, server_.api().Call("DELETE", TopicPath("orders", "/jobs/" + id)));
    TOCSIN_TRY(Check(TextOf(reply, "outcome"), outcome));
    return Line(fmt::format("{}: cancel answers {}: {}", id, outcome, what));
  }

  /// Reserves all due jobs, which must be `count`.
  Result<std::vector<json::object>> Expect(std::string_view topic, size_t count) {
    TOCSIN_ASSIGN(const json::object reply, server_.api().Post(TopicPath(topic, "/reserve"), {{"max", 100}}));
    std::vector<json::object> jobs;
    std::ranges::copy(ObjectsOf(reply, "jobs"), std::back_inserter(jobs));
    TOCSIN_TRY(Check(std::to_string(jobs.size()), std::to_string(count)));
    return jobs;
  }

  Status Ack(std::string_view topic, const std::vector<json::object>& jobs) {
    json::array tokens;
    for (const json::object& job : jobs) tokens.emplace_back(TextOf(job, "token"));
    TOCSIN_ASSIGN(const json::object reply, server_.api().Post(TopicPath(topic, "/ack"), {{"tokens", tokens}}));
    for (const json::object& result : ObjectsOf(reply, "results")) TOCSIN_TRY(Check(TextOf(result, "outcome"), "ok"));
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
  std::error_code problem;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", problem);
  const std::string program = (self.parent_path() / "tocsind").string();
  if (problem || ::access(program.c_str(), X_OK) != 0) {
    return Fail(Code::kNotFound, "there is no server to show: {} is missing", program);
  }
  const std::filesystem::path place = std::filesystem::temp_directory_path(problem);
  if (problem) return Fail(Code::kIo, "there is no folder for temporary files, see TMPDIR: {}", problem.message());
  std::string folder = (place / "tocsin-demo-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return SystemError("make", folder);
  DemoServer server(program, std::move(folder));
  TOCSIN_TRY(Shop(context, server).Run());
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
