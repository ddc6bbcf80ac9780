// `tocsin export`: jobs as lines of JSON that `tocsin import` can submit again.
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/text/progress.h"
#include "cli/transfer/checkpoint.h"
#include "cli/transfer/transfer.h"
#include "cli/verbs/parts.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

constexpr std::array<std::string_view, 5> kStates{"scheduled", "leased", "dead", "done", "cancelled"};

/// Where the lines go: stdout, or a file that a cut-off run can go on with.
class Sink {
 public:
  static Result<Sink> Open(const std::optional<std::string>& path, std::optional<int64_t> keep_bytes) {
    if (!path) return Sink(stdout, "stdout");
    std::FILE* const file = std::fopen(path->c_str(), keep_bytes ? "r+b" : "wbx");
    if (file == nullptr && errno == EEXIST) {
      return Fail(Code::kInvalidArgument, "{} exists: remove it, or go on with it by --resume", *path);
    }
    if (file == nullptr) return Problem("open", *path);
    Sink sink(file, *path);
    if (keep_bytes) {
      struct stat info{};
      if (::fstat(::fileno(file), &info) != 0) return Problem("look at", *path);
      if (info.st_size < *keep_bytes) return Fail(Code::kCorrupt, "{} is shorter than its progress says", *path);
      if (::ftruncate(::fileno(file), *keep_bytes) != 0 || std::fseek(file, 0, SEEK_END) != 0) {
        return Problem("cut", *path);
      }
    }
    return sink;
  }

  Status Write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size()) return {};
    return Problem("write", name_);
  }
  Status Flush() {
    if (std::fflush(file_.get()) == 0) return {};
    return Problem("write", name_);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const {
      if (file != stdout) std::fclose(file);
    }
  };

  Sink(std::FILE* file, std::string name) : file_(file), name_(std::move(name)) {}

  static std::unexpected<Error> Problem(std::string_view verb, const std::string& name) {
    return Fail(Code::kIo, "cannot {} {}: {}", verb, name, std::generic_category().message(errno));
  }

  std::unique_ptr<std::FILE, Close> file_;
  std::string name_;
};

bool IsEmptyFile(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0;
}

/// What is asked for; a run that goes on must ask for the same.
struct Plan {
  std::vector<std::string> topics;
  std::vector<std::string> states;
  std::string asked;
  int64_t total = 0;  // jobs, about
};

class Exporter {
 public:
  Exporter(Context& context, Plan plan, std::optional<std::string> output)
      : context_(context), plan_(std::move(plan)), output_(std::move(output)), progress_(context.clock, "exported") {}

  Result<int64_t> Run(bool resume) {
    TOCSIN_TRY(Begin(resume));
    auto sink = Sink::Open(output_, resume ? std::optional(bytes_) : std::nullopt);
    if (!sink) return std::unexpected(std::move(sink).error());
    if (topic_ < plan_.topics.size()) TOCSIN_TRY(Save(*sink, state_));
    for (; topic_ < plan_.topics.size(); ++topic_, state_ = 0) {
      for (; state_ < plan_.states.size(); ++state_, cursor_.clear()) TOCSIN_TRY(ExportState(*sink));
    }
    TOCSIN_TRY(sink->Flush());
    if (output_) TOCSIN_TRY(Checkpoint(*output_).Remove());
    return jobs_;
  }

 private:
  Status Begin(bool resume) {
    if (!output_) return {};
    const Checkpoint checkpoint(*output_);
    const auto saved = checkpoint.Load();
    if (!saved) return std::unexpected(saved.error());
    if (!resume) return {};
    if (!*saved && IsEmptyFile(*output_)) return {};  // cut off before there was anything to keep
    if (!*saved) return Fail(Code::kInvalidArgument, "there is no {}: nothing was cut off", checkpoint.path());
    const json::object& state = **saved;
    if (TextOf(state, "asked") != plan_.asked) {
      return Fail(Code::kInvalidArgument, "{} is of another export: {}", checkpoint.path(), TextOf(state, "asked"));
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

  Status ExportState(Sink& sink) {
    do {
      auto page = Page();
      if (!page) return std::unexpected(std::move(page).error());
      std::string lines;
      for (const json::value& job : ArrayOf(*page, "jobs")) {
        if (!job.is_object()) continue;
        lines += json::serialize(TransferLine(plan_.topics[topic_], job.get_object()));
        lines += '\n';
        ++jobs_;
      }
      TOCSIN_TRY(sink.Write(lines));
      bytes_ += static_cast<int64_t>(lines.size());
      cursor_ = TextOf(*page, "cursor");
      TOCSIN_TRY(Save(sink, state_ + (cursor_.empty() ? 1 : 0)));
      progress_.Show(jobs_, plan_.total > 0 ? static_cast<double>(jobs_) / static_cast<double>(plan_.total) : -1);
    } while (!cursor_.empty());
    return {};
  }

  Result<json::object> Page() {
    std::string rest = fmt::format("/jobs?state={}&limit=1000", plan_.states[state_]);
    if (!cursor_.empty()) {
      rest += "&cursor=";
      AppendPercent(rest, cursor_);
    }
    auto page = context_.api.Get(TopicPath(plan_.topics[topic_], rest));
    if (page || page.error().code != Code::kInvalidArgument || cursor_.empty()) return page;
    return Fail(Code::kCorrupt,
                "the server no longer knows this place in its jobs, because it was started again meanwhile: {}export "
                "again",
                output_ ? fmt::format("remove {} and {}, and ", *output_, Checkpoint(*output_).path()) : "");
  }

  /// Before the state `next` of the topic, or within it, at the cursor.
  Status Save(Sink& sink, size_t next) {
    if (!output_) return {};
    TOCSIN_TRY(sink.Flush());
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
  if (plan.states.empty()) plan.states = {"scheduled", "leased"};
  const auto topic = arguments.Text("TOPIC");
  if (topic.has_value() == arguments.Has("all")) {
    return Fail(Code::kInvalidArgument, "name one TOPIC, or give --all");
  }
  plan.asked = fmt::format("{} {}", topic ? "topic " + *topic : "all", fmt::join(plan.states, ","));
  const auto reply = context.api.Get(topic ? TopicPath(*topic) : "/v1/topics");
  if (!reply) return std::unexpected(reply.error());
  if (topic) {
    plan.topics.push_back(*topic);
    plan.total = CountOf(*reply, plan.states);
    return plan;
  }
  for (const json::value& one : ArrayOf(*reply, "topics")) {
    if (!one.is_object()) continue;
    plan.topics.push_back(TextOf(one.get_object(), "topic"));
    plan.total += CountOf(one.get_object(), plan.states);
  }
  std::ranges::sort(plan.topics);
  return plan;
}

Result<int> Run(Context& context, const Arguments& arguments) {
  const auto output = arguments.Text("output");
  const bool resume = arguments.Has("resume");
  if (resume && !output) return Fail(Code::kInvalidArgument, "--resume needs --output FILE, the file that was cut off");
  auto plan = MakePlan(context, arguments);
  if (!plan) return std::unexpected(std::move(plan).error());
  const size_t topics = plan->topics.size();
  auto jobs = Exporter(context, *std::move(plan), output).Run(resume);
  if (!jobs) {
    if (output && ::access(Checkpoint(*output).path().c_str(), F_OK) == 0 && jobs.error().code == Code::kIo) {
      jobs.error().message += "\ngo on where it was cut off: the same command with --resume";
    }
    return std::unexpected(std::move(jobs).error());
  }
  if (output && context.out.json()) {
    context.out.Json({{"jobs", *jobs}, {"topics", topics}, {"file", *output}});
  } else if (output) {
    context.out.Print("exported {} jobs of {} topics to {}\n", *jobs, topics, *output);
  }
  return kExitOk;
}

}  // namespace

Command Export() {
  return {.name = "export",
          .summary = "writes jobs as lines of JSON, which import can submit again",
          .details =
              "Jobs that change while they are listed may be missing or come twice: pause the topic for an exact "
              "copy. Attempts that are used up are not kept. The fields state and attempt are for people alone.",
          .positionals = {{"TOPIC", "Name of the topic.", false}},
          .flags = {{.name = "all", .kind = Kind::kSwitch, .doc = "All topics that the token may see."},
                    {.name = "state",
                     .kind = Kind::kChoice,
                     .value = "STATE",
                     .doc = "Only jobs in this state; scheduled and leased unless given.",
                     .choices = {kStates.begin(), kStates.end()},
                     .repeated = true},
                    {.name = "output",
                     .value = "FILE",
                     .doc = "A new file to write to, instead of stdout. FILE.progress keeps the place meanwhile."},
                    {.name = "resume", .kind = Kind::kSwitch, .doc = "Go on with a FILE that was cut off."}},
          .examples = {{"export orders --output orders.jsonl", "a copy"},
                       {"export orders --state dead | tocsin import --topic orders-again",
                        "dead letters to another topic"}},
          .run = Run};
}

}  // namespace tocsin::cli
