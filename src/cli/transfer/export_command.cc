// `tocsin export`: jobs as lines of JSON that `tocsin import` can submit again.
#include <cerrno>
#include <cstdio>

#include <sys/stat.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/text/human.h"
#include "cli/transfer/transfer.h"
#include "model/names.h"

namespace tocsin::cli {
namespace {

constexpr int64_t kPageMax = 1000;  // the server's own limit

/// Where the lines go: stdout, or a file, of which a run that continues keeps some bytes.
Result<FilePtr> OpenToWrite(const std::optional<std::string>& path, std::optional<int64_t> keep_bytes) {
  if (!path) return FilePtr(stdout);
  FilePtr file(std::fopen(path->c_str(), keep_bytes ? "r+b" : "wbx"));
  if (file == nullptr && errno == EEXIST) {
    return Fail(Code::kInvalidArgument, "{} exists: remove it, or continue it with --resume", *path);
  }
  if (file == nullptr) return SystemError("open", *path);
  if (!keep_bytes) return file;
  struct stat info{};
  if (::fstat(::fileno(file.get()), &info) != 0) return SystemError("look at", *path);
  if (info.st_size < *keep_bytes) return Fail(Code::kCorrupt, "{} is shorter than its progress says", *path);
  if (::ftruncate(::fileno(file.get()), *keep_bytes) != 0 || std::fseek(file.get(), 0, SEEK_END) != 0) {
    return SystemError("cut", *path);
  }
  return file;
}

bool IsEmptyFile(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0;
}

/// The server leaves payloads out for access tokens that may only observe.
Status CheckWhole(const json::object& job) {
  if (job.contains("payload") || job.contains("payload_base64")) return {};
  return Fail(Code::kForbidden,
              "the server shows this access token no payloads: an export needs the scope consume or admin");
}

/// What the user asked for; a run that continues must ask for the same.
struct Plan {
  std::vector<std::string> topics;
  std::vector<std::string> states;
  std::string asked;
  int64_t total = 0;  // jobs, roughly
};

class Exporter {
 public:
  Exporter(Context& context, Plan plan, std::optional<std::string> output)
      : context_(context), plan_(std::move(plan)), output_(std::move(output)), progress_(context.clock, "exported") {}

  Result<int64_t> Run(bool resume) {
    TOCSIN_TRY(Begin(resume));
    TOCSIN_ASSIGN(file_, OpenToWrite(output_, resume ? std::optional(bytes_) : std::nullopt));
    if (topic_ < plan_.topics.size()) TOCSIN_TRY(Save(state_));
    for (; topic_ < plan_.topics.size(); ++topic_, state_ = 0) {
      for (; state_ < plan_.states.size(); ++state_, cursor_.clear()) TOCSIN_TRY(ExportState());
    }
    TOCSIN_TRY(Write(""));
    if (output_) TOCSIN_TRY(Checkpoint(*output_).Remove());
    return jobs_;
  }

 private:
  Status Begin(bool resume) {
    if (!output_) return {};
    const Checkpoint checkpoint(*output_);
    TOCSIN_ASSIGN(const auto saved, checkpoint.Load());
    if (!resume) return {};
    if (!saved && IsEmptyFile(*output_)) return {};  // interrupted before there was anything to keep
    if (!saved) return Fail(Code::kInvalidArgument, "there is no {}: no export was interrupted", checkpoint.path());
    const json::object& state = *saved;
    if (TextOf(state, "asked") != plan_.asked) {
      return Fail(Code::kInvalidArgument, "{} belongs to another export: {}", checkpoint.path(),
                  TextOf(state, "asked"));
    }
    const std::string topic = TextOf(state, "topic");
    while (topic_ < plan_.topics.size() && plan_.topics[topic_] < topic) ++topic_;
    const bool same = topic_ < plan_.topics.size() && plan_.topics[topic_] == topic;
    state_ = same ? static_cast<size_t>(IntegerOf(state, "state")) : 0;
    cursor_ = same ? TextOf(state, "cursor") : "";
    bytes_ = IntegerOf(state, "bytes");
    jobs_ = IntegerOf(state, "jobs");
    return {};
  }

  Status ExportState() {
    do {
      TOCSIN_ASSIGN(const json::object page, Page());
      std::string lines;
      for (const json::object& job : ObjectsOf(page, "jobs")) {
        TOCSIN_TRY(CheckWhole(job));
        lines += json::serialize(TransferLine(plan_.topics[topic_], job)) + '\n';
        ++jobs_;
      }
      TOCSIN_TRY(Write(lines));
      bytes_ += static_cast<int64_t>(lines.size());
      cursor_ = TextOf(page, "cursor");
      TOCSIN_TRY(Save(state_ + (cursor_.empty() ? 1 : 0)));
      progress_.Show(jobs_, plan_.total > 0 ? static_cast<double>(jobs_) / static_cast<double>(plan_.total) : -1);
    } while (!cursor_.empty());
    return {};
  }

  Result<json::object> Page() {
    auto page = context_.api.Get(ListTarget(plan_.topics[topic_], plan_.states[state_], kPageMax, cursor_));
    if (page || page.error().code != Code::kInvalidArgument || cursor_.empty()) return page;
    return Fail(Code::kCorrupt, "the server was restarted and no longer knows this place in its jobs: {}export again",
                output_ ? fmt::format("remove {} and {}, and ", *output_, Checkpoint(*output_).path()) : "");
  }

  /// All of it, so that a place that is saved never lies behind the end of the file.
  Status Write(std::string_view text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
    if (written && std::fflush(file_.get()) == 0) return {};
    return SystemError("write", output_.value_or("stdout"));
  }

  /// Saves the place: in the state `next` of the topic, at the cursor.
  Status Save(size_t next) {
    if (!output_) return {};
    return Checkpoint(*output_).Save({{"asked", plan_.asked},
                                      {"topic", plan_.topics[topic_]},
                                      {"state", next},
                                      {"cursor", cursor_},
                                      {"bytes", bytes_},
                                      {"jobs", jobs_}});
  }

  Context& context_;
  const Plan plan_;
  const std::optional<std::string> output_;
  FilePtr file_;
  Progress progress_;
  size_t topic_ = 0;
  size_t state_ = 0;
  std::string cursor_;
  int64_t bytes_ = 0;
  int64_t jobs_ = 0;
};

int64_t CountOf(const json::object& topic, const std::vector<std::string>& states) {
  int64_t count = 0;
  for (const std::string& state : states) count += IntegerOf(ObjectOf(topic, "figures"), state);
  return count;
}

Result<Plan> MakePlan(Context& context, const Arguments& arguments) {
  Plan plan{.states = arguments.All("state")};
  if (plan.states.empty()) plan.states = {"scheduled", "leased", "dead"};
  const auto topic = arguments.Text("TOPIC");
  if (topic.has_value() == arguments.Has("all")) {
    return Fail(Code::kInvalidArgument, "name one TOPIC, or give --all");
  }
  plan.asked = fmt::format("{} {}", topic ? "topic " + *topic : "all", fmt::join(plan.states, ","));
  TOCSIN_ASSIGN(const json::object reply, context.api.Get(topic ? TopicPath(*topic) : "/v1/topics"));
  if (topic) {
    plan.topics.push_back(*topic);
    plan.total = CountOf(reply, plan.states);
    return plan;
  }
  for (const json::object& one : ObjectsOf(reply, "topics")) {
    plan.topics.push_back(TextOf(one, "topic"));
    plan.total += CountOf(one, plan.states);
  }
  std::ranges::sort(plan.topics);
  return plan;
}

Result<int> Run(Context& context, const Arguments& arguments) {
  const auto output = arguments.Text("output");
  const bool resume = arguments.Has("resume");
  if (resume && !output) return Fail(Code::kInvalidArgument, "--resume needs --output FILE, the file to continue");
  TOCSIN_ASSIGN(Plan plan, MakePlan(context, arguments));
  const size_t topics = plan.topics.size();
  auto jobs = Exporter(context, std::move(plan), output).Run(resume);
  if (!jobs) {
    if (output && ::access(Checkpoint(*output).path().c_str(), F_OK) == 0 && jobs.error().code == Code::kIo) {
      jobs.error().message += "\ncontinue where it stopped: the same command with --resume";
    }
    return std::unexpected(std::move(jobs).error());
  }
  if (output && context.out.json()) {
    context.out.Json({{"jobs", *jobs}, {"topics", topics}, {"file", *output}});
  } else if (output) {
    context.out.Print("exported {} of {} to {}\n", Counted(*jobs, "job"),
                      Counted(static_cast<int64_t>(topics), "topic"), *output);
  }
  return kExitOk;
}

}  // namespace

Command Export() {
  return {.name = "export",
          .summary = "writes jobs as lines of JSON, which import can submit again",
          .details =
              "Each line is a job as a listing shows it, and its topic. Jobs that change while they are listed may be "
              "missing or come twice: pause the topic for an exact copy. Events that were counted are not in it, nor "
              "settings of topics. Import makes a leased job one that waits.",
          .positionals = {{"TOPIC", "Name of the topic.", false}},
          .flags = {{"all", Kind::kSwitch, "All topics that the access token may see."},
                    {.name = "state",
                     .kind = Kind::kChoice,
                     .doc = "Only jobs in this state. Default: scheduled, leased and dead.",
                     .value = "STATE",
                     .choices = {std::begin(kStateNames), std::end(kStateNames)},
                     .repeated = true},
                    {.name = "output",
                     .doc = "A new file to write to, instead of stdout. FILE.progress keeps the place until the end.",
                     .value = "FILE"},
                    {"resume", Kind::kSwitch, "Continue a FILE whose export was interrupted."}},
          .examples = {{"export orders --output orders.jsonl", "a copy"},
                       {"export orders --state dead | tocsin import --topic orders-again --as-new",
                        "dead letters, to be delivered from another topic"}},
          .no = "there is no such topic",
          .run = Run};
}

}  // namespace tocsin::cli
