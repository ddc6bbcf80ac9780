// `tocsin import`: submits the lines of a file, in batches. It can be interrupted and repeated without harm.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <thread>

#include <sys/file.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "cli/arguments.h"
#include "cli/transfer/transfer.h"

namespace tocsin::cli {
namespace {

constexpr size_t kBatchBytes = 4 << 20;  // of lines; a body may have 16 MiB by default
constexpr int64_t kBatchMax = 10'000;
constexpr Millis kPauseMin{100};
constexpr Millis kPauseMax{5'000};
constexpr Millis kRetryTime{30'000};
constexpr size_t kReportedMax = 20;

struct Figures {
  int64_t accepted = 0;
  int64_t duplicate = 0;
  int64_t conflict = 0;
  int64_t refused = 0;
};

struct Line {
  int64_t number = 0;
  TransferJob parsed;
};

/// Lines of a file or of stdin, with their numbers and offsets.
class LineReader {
 public:
  explicit LineReader(FilePtr file) : file_(std::move(file)) {}

  /// Reads up to the line that ends at `offset`; false if none does.
  bool SkipTo(int64_t offset) {
    while (offset_ < offset && Next()) {
    }
    return offset_ == offset;
  }

  /// False if another run has locked it.
  bool Lock() const { return ::flock(::fileno(file_.get()), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

  bool Next() {
    char* text = line_.release();
    const ssize_t size = ::getline(&text, &room_, file_.get());
    line_.reset(text);
    if (size < 0) return false;
    offset_ += size;
    ++number_;
    text_ = {text, static_cast<size_t>(size)};
    hash_ = Hash64(text_, hash_);
    while (text_.ends_with('\n') || text_.ends_with('\r')) text_.remove_suffix(1);
    return true;
  }

  bool failed() const { return std::ferror(file_.get()) != 0; }
  std::string_view text() const { return text_; }
  int64_t number() const { return number_; }
  int64_t offset() const { return offset_; }
  /// Of all lines so far.
  std::string hash() const { return fmt::format("{:016x}", hash_); }
  /// 0 if it is not known.
  int64_t Size() const {
    struct stat info{};
    return ::fstat(::fileno(file_.get()), &info) == 0 && S_ISREG(info.st_mode) ? info.st_size : 0;
  }

 private:
  struct Free {
    void operator()(char* text) const { std::free(text); }
  };

  FilePtr file_;
  std::unique_ptr<char, Free> line_;
  size_t room_ = 0;
  std::string_view text_;
  int64_t number_ = 0;
  int64_t offset_ = 0;
  uint64_t hash_ = 0;
};

bool IsTemporary(Code code) {
  return code == Code::kIo || code == Code::kTimedOut || code == Code::kOverloaded || code == Code::kShuttingDown;
}

class Importer {
 public:
  Importer(Context& context, std::string file, std::string topic, AsNew as_new, size_t batch)
      : context_(context),
        file_(std::move(file)),
        topic_(std::move(topic)),
        as_new_(as_new),
        batch_max_(batch),
        checkpoint_(file_),
        progress_(context.clock, "imported") {}

  Status Run() {
    TOCSIN_ASSIGN(FilePtr file, OpenToRead(file_));
    LineReader reader(std::move(file));
    TOCSIN_TRY(Resume(reader));
    while (reader.Next()) {
      if (!reader.text().empty()) TOCSIN_TRY(AddLine(reader));
    }
    if (reader.failed()) return SystemError("read", file_);
    TOCSIN_TRY(Flush(reader));
    if (file_ != "-") TOCSIN_TRY(checkpoint_.Remove());
    return {};
  }

  json::object Summary() const {
    return {{"accepted", figures_.accepted},
            {"duplicate", figures_.duplicate},
            {"conflict", figures_.conflict},
            {"refused", figures_.refused},
            {"refused_lines", json::value_from(refused_lines_)}};
  }
  const Figures& figures() const { return figures_; }
  const std::vector<int64_t>& refused_lines() const { return refused_lines_; }
  bool saved() const { return saved_; }

 private:
  Status Resume(LineReader& reader) {
    if (file_ == "-") return {};
    if (!reader.Lock()) return Fail(Code::kInUse, "another import of {} is running", file_);
    TOCSIN_ASSIGN(const auto saved, checkpoint_.Load());
    if (!saved) return {};
    const json::object& state = *saved;
    TOCSIN_TRY(CheckSame("server", TextOf(state, "server"), server()));
    TOCSIN_TRY(CheckSame("--topic", TextOf(state, "topic"), topic_));
    if (!reader.SkipTo(IntegerOf(state, "bytes")) || reader.hash() != TextOf(state, "hash")) {
      return Fail(Code::kInvalidArgument, "{} belongs to a file with another beginning; remove it to start over",
                  checkpoint_.path());
    }
    figures_ = {IntegerOf(state, "accepted"), IntegerOf(state, "duplicate"), IntegerOf(state, "conflict"),
                IntegerOf(state, "refused")};
    for (const json::value& line : ArrayOf(state, "refused_lines")) {
      if (line.is_int64()) refused_lines_.push_back(line.get_int64());
    }
    saved_ = true;
    PrintStderr("tocsin: continuing after line {}, as {} says; remove that file to start over\n", reader.number(),
                checkpoint_.path());
    return {};
  }

  /// A saved place says what one server has received for one topic, and nothing about others.
  Status CheckSame(std::string_view what, const std::string& then, const std::string& now) const {
    if (then == now) return {};
    return Fail(Code::kInvalidArgument,
                "{} belongs to an import with the {} \"{}\", not \"{}\"; remove it to start over", checkpoint_.path(),
                what, Printable(then), now);
  }

  const std::string& server() const { return context_.api.url(); }

  Status AddLine(const LineReader& reader) {
    auto parsed = ParseTransferLine(reader.text(), reader.number(), topic_, as_new_);
    if (!parsed) {
      Refuse(reader.number(), parsed.error().message);
      return {};
    }
    batch_.push_back({reader.number(), *std::move(parsed)});
    batch_bytes_ += reader.text().size();
    if (batch_.size() < batch_max_ && batch_bytes_ < kBatchBytes) return {};
    return Flush(reader);
  }

  /// Submits the batch, one call for each run of lines with the same topic, and saves the place after it.
  Status Flush(const LineReader& reader) {
    pause_ = kPauseMin;
    retry_until_ = context_.clock.IoNow() + kRetryTime;
    std::span<const Line> left = batch_;
    while (!left.empty()) {
      const auto end =
          std::ranges::find_if(left, [&](const Line& line) { return line.parsed.topic != left[0].parsed.topic; });
      const auto run = left.first(static_cast<size_t>(end - left.begin()));
      TOCSIN_TRY(Submit(run));
      left = left.subspan(run.size());
    }
    batch_.clear();
    batch_bytes_ = 0;
    const int64_t size = reader.Size();
    progress_.Show(figures_.accepted + figures_.duplicate,
                   size > 0 ? static_cast<double>(reader.offset()) / static_cast<double>(size) : -1);
    if (file_ == "-") return {};
    saved_ = true;
    json::object state = Summary();
    state.insert({{"line", reader.number()},
                  {"bytes", reader.offset()},
                  {"hash", reader.hash()},
                  {"server", server()},
                  {"topic", topic_}});
    return checkpoint_.Save(state);
  }

  /// Lines of one topic. If the server refuses the call because of one of them, submits halves to find out which.
  Status Submit(std::span<const Line> lines) {
    json::array jobs;
    for (const Line& line : lines) {
      json::object& job = jobs.emplace_back(line.parsed.job).as_object();
      if (job.contains("due_ms")) job["past"] = "fire";  // an export may be old
    }
    auto reply = Post(lines[0].parsed.topic, {{"jobs", std::move(jobs)}});
    if (reply) return Count(lines, ArrayOf(*reply, "jobs"));
    if (reply.error().code == Code::kForbidden && as_new_ == AsNew::kNo) {
      reply.error().message += "\nto submit the jobs as new ones, without their past: --as-new";
    }
    if (ExitStatusOf(reply.error().code) != kExitUsage) return std::unexpected(reply.error());
    if (lines.size() == 1) {
      Refuse(lines[0].number, reply.error().message);
      return {};
    }
    TOCSIN_TRY(Submit(lines.first(lines.size() / 2)));
    return Submit(lines.subspan(lines.size() / 2));
  }

  Status Count(std::span<const Line> lines, const json::array& outcomes) {
    if (outcomes.size() != lines.size()) return Fail(Code::kInternal, "the answer has another number of jobs");
    std::vector<Line> again;
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string outcome = outcomes[i].is_object() ? TextOf(outcomes[i].get_object(), "outcome") : "";
      const bool passes = outcome == "overloaded" || outcome == "unavailable";
      if (outcome == "accepted") {
        ++figures_.accepted;
      } else if (outcome == "duplicate") {
        ++figures_.duplicate;
      } else if (passes && context_.clock.IoNow() < retry_until_) {
        again.push_back(lines[i]);
      } else if (outcome == "over_capacity" || outcome == "storage_full" || passes) {
        return Full(lines[i], outcome);
      } else if (outcome == "conflict" || outcome == "in_flight") {
        ++figures_.conflict;
        Report(lines[i].number, outcome + ": another job has its id");
      } else {
        Refuse(lines[i].number, outcome);
      }
    }
    if (again.empty()) return {};
    Pause();
    return Submit(again);
  }

  /// Not the fault of the line, and the next ones would fail too: stop, and keep the place.
  static std::unexpected<Error> Full(const Line& line, std::string_view outcome) {
    return Fail(Code::kOverCapacity, "line {}: {}: the server cannot take more jobs into {} now; stopped there",
                line.number, outcome, Printable(line.parsed.topic));
  }

  /// Retries while the server restarts or is overloaded: a repeated batch does no harm.
  Result<json::object> Post(const std::string& topic, const json::object& body) {
    for (;;) {
      auto reply = context_.api.Post(TopicPath(topic, "/jobs"), body);
      if (reply || !IsTemporary(reply.error().code) || context_.clock.IoNow() >= retry_until_) return reply;
      Pause();
    }
  }

  /// Longer each time.
  void Pause() { std::this_thread::sleep_for(std::exchange(pause_, std::min(kPauseMax, pause_ * 2))); }

  void Refuse(int64_t line, const std::string& why) {
    ++figures_.refused;
    refused_lines_.push_back(line);
    Report(line, why);
  }

  void Report(int64_t line, const std::string& why) {
    if (++reported_ > kReportedMax) return;
    progress_.Clear();
    PrintStderr("tocsin: line {}: {}{}\n", line, Printable(why),
                reported_ == kReportedMax ? " (later ones are only counted)" : "");
  }

  Context& context_;
  const std::string file_;
  const std::string topic_;
  const AsNew as_new_;
  const size_t batch_max_;
  const Checkpoint checkpoint_;
  Progress progress_;
  std::vector<Line> batch_;
  size_t batch_bytes_ = 0;
  Figures figures_;
  std::vector<int64_t> refused_lines_;
  size_t reported_ = 0;
  bool saved_ = false;
  Millis pause_ = kPauseMin;
  std::chrono::steady_clock::time_point retry_until_;
};

std::string LinesText(const std::vector<int64_t>& lines) {
  const std::span<const int64_t> first(lines.data(), std::min(lines.size(), kReportedMax));
  return fmt::format("{}{}", fmt::join(first, ", "), lines.size() > first.size() ? " and more" : "");
}

void Print(Context& context, const Importer& importer) {
  const Figures& figures = importer.figures();
  if (context.out.json()) {
    context.out.Json(importer.Summary());
    return;
  }
  context.out.Print("{} accepted, {} duplicate, {} conflict, {} refused\n", figures.accepted, figures.duplicate,
                    figures.conflict, figures.refused);
  if (figures.refused > 0) context.out.Print("refused: lines {}\n", LinesText(importer.refused_lines()));
}

Result<int> Run(Context& context, const Arguments& arguments) {
  const int64_t batch = *arguments.Number("batch");
  if (batch < 1 || batch > kBatchMax) {
    return Fail(Code::kInvalidArgument, "--batch: {} is not 1 to {}", batch, kBatchMax);
  }
  Importer importer(context, arguments.Text("FILE").value_or("-"), arguments.Text("topic").value_or(""),
                    arguments.Has("as-new") ? AsNew::kYes : AsNew::kNo, static_cast<size_t>(batch));
  if (Status done = importer.Run(); !done) {
    if (importer.saved()) done.error().message += "\ncontinue where it stopped: the same command again";
    return std::unexpected(std::move(done).error());
  }
  Print(context, importer);
  return importer.figures().refused + importer.figures().conflict > 0 ? kExitNo : kExitOk;
}

}  // namespace

Command Import() {
  return {
      .name = "import",
      .summary = "submits the lines of a file, such as one that export wrote",
      .details =
          "Each line is a JSON object: a job as a listing shows it or as a submit takes it, and its topic. A job that "
          "was listed keeps its attempts, its reason and its times, and a dead letter stays one: that needs an access "
          "token with the scope admin. A job without an id gets one made of the line's text and number, so that a "
          "repeated import stores nothing twice. FILE.progress keeps the place after each batch that was answered: the "
          "same command continues from there. Refused lines are named, and the others submitted; done and cancelled "
          "jobs are refused too. If the topic or the disk is full, the import stops and keeps the place.",
      .positionals = {{"FILE", "The file; - or nothing is stdin.", false}},
      .flags = {{.name = "topic", .doc = "Into this topic, whatever the lines say.", .value = "TOPIC"},
                {"as-new", Kind::kSwitch, "As new jobs, with all their attempts and without their past."},
                {"batch", Kind::kNumber, "Jobs in one call, up to 10000.", "1000"}},
      .examples = {{"import orders.jsonl", "a file that export wrote"},
                   {"import --topic orders jobs.jsonl", "lines without a topic, or with another one"},
                   {"import --topic again --as-new dead.jsonl", "dead letters, to be delivered once more"}},
      .no = "a line was refused, or another job has its id",
      .run = Run};
}

}  // namespace tocsin::cli
