#include "cli/verbs/job_view.h"

#include "base/text.h"
#include "cli/text/human_size.h"
#include "cli/text/human_time.h"

namespace tocsin::cli {
namespace {

std::string MomentAndDistance(int64_t ms, Time now) {
  return fmt::format("{} ({})", ShowMoment(FromMs(ms)), ShowDistance(FromMs(ms), now));
}

void Line(Output& out, std::string_view name, std::string_view value) {
  if (!value.empty()) out.Print("{} {}\n", out.Paint(Colour::kDim, fmt::format("{:<8}", name)), value);
}

}  // namespace

std::string DueOf(const json::object& job, Time now) {
  const int64_t due_ms = IntegerOf(job, "due_ms", -1);
  return due_ms < 0 ? "when its count is reached" : MomentAndDistance(due_ms, now);
}

std::string PayloadPreview(const json::object& job) {
  const std::string bytes = PayloadOf(job);
  return IsUtf8(bytes) ? Printable(bytes) : fmt::format("({} that are no text)", ShowSize(std::ssize(bytes)));
}

void PrintJob(Output& out, const json::object& job, Time now) {
  Line(out, "job", Printable(TextOf(job, "id")));
  Line(out, "state", Printable(TextOf(job, "state")));
  Line(out, "token", Printable(TextOf(job, "token")));
  Line(out, "key", Printable(TextOf(job, "key")));
  Line(out, "due", DueOf(job, now));
  if (job.contains("count_left")) {
    Line(out, "trigger",
         fmt::format("{}, events to come: {}", Printable(TextOf(job, "trigger")), IntegerOf(job, "count_left")));
  }
  Line(out, "attempt", fmt::format("{} of {}", IntegerOf(job, "attempt"), IntegerOf(job, "max_attempts")));
  if (const int64_t ms = IntegerOf(job, "lease_deadline_ms"); ms > 0) Line(out, "lease", MomentAndDistance(ms, now));
  Line(out, "reason", Printable(TextOf(job, "reason")));
  for (const auto& header : ObjectOf(job, "headers")) {
    const std::string value = header.value().is_string() ? std::string(header.value().get_string()) : "";
    Line(out, "header", fmt::format("{}={}", Printable(header.key()), Printable(value)));
  }
  Line(out, "payload", PayloadPreview(job));
  if (const std::string bytes = PayloadOf(job); !IsUtf8(bytes)) {
    std::string base64;
    AppendBase64(base64, bytes);
    Line(out, "base64", base64);
  }
}

}  // namespace tocsin::cli
