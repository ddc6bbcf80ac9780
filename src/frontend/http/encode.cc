#include "frontend/http/encode.h"

#include "core/figures.h"
#include "frontend/http/json_writer.h"
#include "frontend/shared/views.h"
#include "model/names.h"

namespace tocsin::http {
namespace {

/// A job that waits for a count alone has no due time.
void AppendDue(std::string& out, Time due) {
  out += ",\"due_ms\":";
  if (due == kNever) {
    out += "null";
  } else {
    AppendInteger(out, ToMs(due));
  }
}

// Of an answer with one element for each job or token: around them, and each with its longest outcome.
constexpr size_t kFrameBytes = 16;
constexpr size_t kSubmittedBytes = 80;  // with a server's id
constexpr size_t kSettledBytes = 64;

}  // namespace

std::string EncodeSubmitted(std::span<const Submitted> jobs, std::span<const std::string_view> own_ids) {
  std::string out;
  out.reserve(kFrameBytes + jobs.size() * kSubmittedBytes);
  out += "{\"jobs\":[";
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (i > 0) out += ',';
    out += "{\"id\":";
    if (!own_ids[i].empty()) {
      AppendString(out, own_ids[i]);
    } else if (jobs[i].uid != 0) {
      AppendString(out, UidText(jobs[i].uid));
    } else {
      out += "null";
    }
    if (IsStored(jobs[i].outcome)) AppendDue(out, jobs[i].due);
    out += ",\"outcome\":\"";
    out += NameOf(jobs[i].outcome);
    out += "\"}";
  }
  out += "]}";
  return out;
}

size_t SubmittedBytesMax(std::span<const std::string_view> own_ids) {
  size_t bytes = kFrameBytes;
  // Names have no control characters, so an escape is two bytes.
  for (const std::string_view id : own_ids) bytes += kSubmittedBytes + 2 * id.size();
  return bytes;
}

bool EncodeDelivered(JsonWriter& out, const JobBatch& batch, size_t& next) {
  if (next == 0) {
    size_t bytes = 64 + batch.jobs.size() * 192;  // most jobs have short names and no headers
    // Base64 and escapes take up to a third more; a large text must not be copied while it grows.
    for (const JobView& job : batch.jobs) bytes += job.payload.size() + job.payload.size() / 3;
    out.Reserve(bytes);
    out.Object(1);
    out.Name("jobs");
    out.Array(batch.jobs.size());
  }
  for (const size_t end = shared::StepEnd(batch, next); next < end; ++next)
    shared::ShowDelivered(out, batch.jobs[next]);
  if (next < batch.jobs.size()) return false;
  out.EndArray();
  out.EndObject();
  return true;
}

std::string EncodeSettled(std::span<const Token> tokens, std::span<const SettleOutcome> outcomes) {
  std::string out;
  out.reserve(SettledBytesMax(tokens.size()));
  out += "{\"results\":[";
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) out += ',';
    out += "{\"token\":\"";
    out += TokenText(tokens[i]);
    out += "\",\"outcome\":\"";
    out += NameOf(outcomes[i]);
    out += "\"}";
  }
  out += "]}";
  return out;
}

size_t SettledBytesMax(size_t tokens) { return kFrameBytes + tokens * kSettledBytes; }

std::string EncodeAmended(const Amended& amended, std::string_view done) {
  std::string out = fmt::format("{{\"outcome\":\"{}\"", NameOf(amended.outcome, done));
  if (amended.outcome == AmendOutcome::kDone && amended.due != Time{}) AppendDue(out, amended.due);
  out += '}';
  return out;
}

std::string EncodeCounted(const Counted& counted) {
  return fmt::format("{{\"outcome\":\"{}\",\"left\":{}}}", NameOf(counted.outcome), counted.left);
}

std::string EncodeStats(const NodeFacts& node, const Totals& totals) {
  const auto in = static_cast<int64_t>(totals.figures.recovered + totals.figures.accepted);
  const int64_t difference = ConservationDifference(totals.figures);
  JsonWriter out;
  out.Object(9);
  out.Member("version", node.version);
  out.Member("now_ms", node.now_ms);
  out.Member("uptime_ms", node.uptime_ms);
  out.Member("shards", node.shards);
  out.Member("connections", node.connections);
  out.Member("topics", totals.topics);
  out.Name("totals");
  shared::ShowFigures(out, totals.figures);
  out.Name("conservation");
  out.Object(3);
  out.Member("in", in);
  out.Member("out", in - difference);
  out.Member("difference", difference);
  out.EndObject();
  out.Name("lateness_ms");
  shared::Show(out, totals.lateness);
  out.EndObject();
  return out.Take();
}

std::string EncodeError(const Error& error) {
  std::string out = "{\"error\":{\"code\":\"";
  out += RowOf(error.code).name;
  out += "\",\"message\":";
  AppendString(out, IsUtf8(error.message) ? std::string_view(error.message) : "the request is not valid UTF-8");
  if (!error.field.empty() && IsUtf8(error.field)) {
    out += ",\"field\":";
    AppendString(out, error.field);
  }
  out += "}}";
  return out;
}

}  // namespace tocsin::http
