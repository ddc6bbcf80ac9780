#include "cli/transfer/transfer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include <unistd.h>

#include "base/hash.h"
#include "cli/text/output.h"

namespace tocsin::cli {
namespace {

/// Fields of a line that a submit does not take. What they say ends with the job's stay on its server.
constexpr std::array<std::string_view, 8> kForPeople{
    "topic", "count_left", "lease_deadline_ms", "leased_ms", "finished_ms", "extensions", "holder", "token"};
/// Fields of a submit that tell the past of a copy.
constexpr std::array<std::string_view, 6> kPast{"state",      "attempt",         "reason",
                                                "created_ms", "last_attempt_ms", "died_ms"};

constexpr Millis kRedraw{100};
constexpr int kBarWidth = 30;

/// A job as a server shows it -> as a submit takes it.
void MakeSubmit(json::object& job) {
  if (TextOf(job, "state") == "leased") {
    // Its holder stays behind, so its attempt does not count, and it waits.
    job["state"] = "scheduled";
    job["attempt"] = std::max<int64_t>(0, IntegerOf(job, "attempt") - 1);
    job.erase("last_attempt_ms");
    job.erase("count_left");  // a job that was delivered counts no more
    job.erase("trigger");
  }
  if (job.contains("due_ms") && job["due_ms"].is_null()) job.erase("due_ms");
  if (!job.contains("count_left")) return;
  const bool fired = TextOf(job, "trigger") == "count" && job.contains("due_ms");
  const bool delivered = TextOf(job, "state") == "dead" || IntegerOf(job, "attempt") > 0;
  const int64_t left = IntegerOf(job, "count_left");
  if (fired || delivered || left == 0) {
    job.erase("trigger");
  } else {
    job["count"] = left;
  }
}

}  // namespace

json::object TransferLine(std::string_view topic, const json::object& shown) {
  json::object line{{"topic", topic}};
  line.insert(shown.begin(), shown.end());
  return line;
}

Result<TransferJob> ParseTransferLine(std::string_view line, int64_t number, std::string_view topic, AsNew as_new) {
  boost::system::error_code problem;
  json::value value = json::parse({line.data(), line.size()}, problem);
  if (problem || !value.is_object()) return Fail(Code::kInvalidArgument, "not a JSON object");
  TransferJob parsed{.topic = std::string(topic), .job = std::move(value.as_object())};
  if (parsed.topic.empty()) parsed.topic = TextOf(parsed.job, "topic");
  if (parsed.topic.empty()) return Fail(Code::kInvalidArgument, "no topic: add the field topic, or give --topic");
  if (const std::string state = TextOf(parsed.job, "state"); state == "done" || state == "cancelled") {
    return Fail(Code::kInvalidArgument, "its state is {}: it would be delivered again; remove that field to submit it",
                state);
  }
  MakeSubmit(parsed.job);
  for (const std::string_view name : kForPeople) parsed.job.erase(name);
  if (as_new == AsNew::kYes) {
    for (const std::string_view name : kPast) parsed.job.erase(name);
  }
  if (!parsed.job.contains("id")) {
    const auto seed = static_cast<uint64_t>(number);
    parsed.job["id"] = fmt::format("line-{}-{:016x}{:016x}", number, Hash64(line, seed), Hash64(line, ~seed));
  }
  return parsed;
}

Result<std::optional<json::object>> Checkpoint::Load() const {
  if (::access(path_.c_str(), F_OK) != 0) return std::nullopt;
  TOCSIN_ASSIGN(const std::string text, ReadAll(path_));
  boost::system::error_code problem;
  json::value value = json::parse(text, problem);
  if (problem || !value.is_object()) return Fail(Code::kCorrupt, "{} cannot be understood; remove it", path_);
  return std::move(value.as_object());
}

Status Checkpoint::Save(const json::object& state) const {
  const std::string fresh = path_ + ".new";
  FilePtr file(std::fopen(fresh.c_str(), "wb"));
  if (file == nullptr) return SystemError("write", fresh);
  const std::string text = json::serialize(state) + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  const bool closed = std::fclose(file.release()) == 0;
  if (!written || !closed) return SystemError("write", fresh);
  if (std::rename(fresh.c_str(), path_.c_str()) != 0) return SystemError("write", path_);
  return {};
}

Status Checkpoint::Remove() const {
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) return SystemError("remove", path_);
  return {};
}

Progress::Progress(const Clock& clock, std::string verb)
    : clock_(clock), verb_(std::move(verb)), terminal_(isatty(STDERR_FILENO) == 1), began_(clock.IoNow()) {}

void Progress::Show(int64_t jobs, double part) {
  const auto now = clock_.IoNow();
  if (!terminal_ || now - shown_ < kRedraw) return;
  shown_ = now;
  visible_ = true;
  PrintStderr("\r{}\x1b[K", ProgressLine(verb_, jobs, part, now - began_));
}

void Progress::Clear() {
  if (!visible_) return;
  visible_ = false;
  PrintStderr("\r\x1b[K");
}

std::string ProgressLine(const std::string& verb, int64_t jobs, double part, std::chrono::nanoseconds took) {
  const double seconds = std::max(0.001, std::chrono::duration<double>(took).count());
  std::string line = fmt::format("{} {} {}  {}/s", verb, Grouped(jobs), jobs == 1 ? "job" : "jobs",
                                 Grouped(static_cast<int64_t>(static_cast<double>(jobs) / seconds)));
  if (part < 0) return line;
  part = std::clamp(part, 0.0, 1.0);
  const std::string bar(static_cast<size_t>(part * kBarWidth), '#');
  return line + fmt::format("  [{:<{}}] {:.0f} %", bar, kBarWidth, part * 100);
}

std::string Grouped(int64_t number) {
  std::string text = std::to_string(number);
  const auto begin = static_cast<std::ptrdiff_t>(number < 0);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > begin; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

}  // namespace tocsin::cli
