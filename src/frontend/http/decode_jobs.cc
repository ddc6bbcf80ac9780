// What is said of jobs: submit, amend, count.
#include <charconv>

#include "frontend/http/decode.h"
#include "frontend/http/encode.h"
#include "frontend/http/fields.h"
#include "frontend/http/text.h"
#include "model/names.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;

/// When a job is due and what it carries: the fields that a submit and an amendment share.
struct ContentDraft {
  Document& document;
  std::optional<Millis> delay;
  std::optional<Time> due;
  std::optional<std::string_view> payload;
};

struct JobDraft : ContentDraft {
  NewJob& job;
};

Status TakeDelay(ContentDraft& draft, std::string_view name, const json::value& value) {
  return Put(draft.delay, AsInteger(name, value, 0, kDelayMax.count()));
}

Status TakeDue(ContentDraft& draft, std::string_view name, const json::value& value) {
  int64_t due_ms = 0;
  TOCSIN_TRY(Put(due_ms, AsInteger(name, value, 0, ToMs(kNever) - 1)));
  draft.due = FromMs(due_ms);
  return {};
}

Status PutPayload(ContentDraft& draft, std::string_view name, std::string_view payload) {
  if (draft.payload) {
    return FailField(Code::kInvalidArgument, std::string(name), "a job has either payload or payload_base64, not both");
  }
  draft.payload = payload;
  return {};
}

Status TakePayload(ContentDraft& draft, std::string_view name, const json::value& value) {
  const auto text = AsText(name, value);
  if (!text) return std::unexpected(text.error());
  return PutPayload(draft, name, *text);
}

Status TakeBase64(ContentDraft& draft, std::string_view name, const json::value& value) {
  const auto text = AsText(name, value);
  if (!text) return std::unexpected(text.error());
  auto bytes = DecodeBase64(*text);
  if (!bytes) {
    return FailField(Code::kInvalidArgument, std::string(name), "{} is not base64 with padding (RFC 4648)", name);
  }
  return PutPayload(draft, name, draft.document.Keep(*std::move(bytes)));
}

Status OneOfBoth(const ContentDraft& draft) {
  if (!draft.delay || !draft.due) return {};
  return FailField(Code::kInvalidArgument, "due_ms", "a job has either delay_ms or due_ms, not both");
}

Status TakeHeaders(JobDraft& draft, std::string_view name, const json::value& value) {
  const auto* object = value.if_object();
  if (object == nullptr) {
    return FailField(Code::kInvalidArgument, std::string(name), "{} takes an object of strings", name);
  }
  draft.job.headers.reserve(object->size());
  for (const auto& [key, text] : *object) {
    const std::string_view header(key.data(), key.size());
    const auto* content = text.if_string();
    if (content == nullptr) return std::unexpected(Within(AsText(Shown(header), text).error(), name));
    draft.job.headers.push_back({header, View(*content)});
  }
  return {};
}

template <class Enum>
Result<Enum> TakeChoice(std::string_view name, const json::value& value, std::span<const std::string_view> choices) {
  const auto text = AsText(name, value);
  if (!text) return std::unexpected(text.error());
  const auto choice = std::ranges::find(choices, *text);
  if (choice != choices.end()) return static_cast<Enum>(choice - choices.begin());
  return FailField(Code::kInvalidArgument, std::string(name), "{} takes one of: {}", name, fmt::join(choices, ", "));
}

// In the order of the enum OnConflict.
constexpr std::string_view kOnConflict[] = {"reject", "replace", "keep"};

/// A name that is there: an empty one is a mistake of the sender, not a request for a server's id.
Result<std::string_view> AsName(std::string_view name, const json::value& value) {
  auto text = AsText(name, value);
  if (text && text->empty()) {
    return FailField(Code::kInvalidArgument, std::string(name), "{} is empty: it takes 1 to 256 bytes", name);
  }
  return text;
}

constexpr Field<JobDraft> kJobFields[] = {
    {"id", [](JobDraft& d, std::string_view name, const json::value& v) { return Put(d.job.id, AsName(name, v)); }},
    {"key", [](JobDraft& d, std::string_view name, const json::value& v) { return Put(d.job.key, AsName(name, v)); }},
    {"delay_ms", [](JobDraft& d, std::string_view name, const json::value& v) { return TakeDelay(d, name, v); }},
    {"due_ms", [](JobDraft& d, std::string_view name, const json::value& v) { return TakeDue(d, name, v); }},
    {"payload", [](JobDraft& d, std::string_view name, const json::value& v) { return TakePayload(d, name, v); }},
    {"payload_base64", [](JobDraft& d, std::string_view name, const json::value& v) { return TakeBase64(d, name, v); }},
    {"headers", TakeHeaders},
    {"trigger", [](JobDraft& d, std::string_view name,
                   const json::value& v) { return Put(d.job.trigger, TakeChoice<Trigger>(name, v, kTriggerNames)); }},
    {"count", [](JobDraft& d, std::string_view name,
                 const json::value& v) { return Put(d.job.count, AsInteger(name, v, 1, kCountMax)); }},
    {"max_attempts", [](JobDraft& d, std::string_view name,
                        const json::value& v) { return Put(d.job.max_attempts, AsInteger(name, v, 1, kAttemptsMax)); }},
    {"on_conflict",
     [](JobDraft& d, std::string_view name, const json::value& v) {
       return Put(d.job.on_conflict, TakeChoice<OnConflict>(name, v, kOnConflict));
     }},
};

Status DecodeJob(Document& document, const json::object& object, NewJob& job) {
  JobDraft draft{{.document = document}, job};
  TOCSIN_TRY(ReadFields(draft, object, kJobFields));
  TOCSIN_TRY(OneOfBoth(draft));
  if (job.trigger == Trigger::kEither && !draft.delay && !draft.due) {
    return FailField(Code::kInvalidArgument, "delay_ms", "trigger either needs delay_ms or due_ms as well");
  }
  job.timeline = draft.due ? Timeline::kUtc : Timeline::kSteady;
  job.delay = draft.delay.value_or(Millis(0));
  job.due = draft.due.value_or(Time{});
  job.payload = draft.payload.value_or("");
  return {};
}

Status DecodeBatch(Document& document, const json::array& array, std::vector<NewJob>& jobs) {
  jobs.resize(array.size());
  for (size_t i = 0; i < array.size(); ++i) {
    const auto* object = array[i].if_object();
    const Status status = object != nullptr ? DecodeJob(document, *object, jobs[i])
                                            : Status(Fail(Code::kInvalidArgument, "a job is an object"));
    if (!status) return std::unexpected(Within(status.error(), fmt::format("jobs[{}]", i)));
  }
  return {};
}

}  // namespace

Result<SubmitRequest> DecodeSubmit(std::string topic, std::shared_ptr<Document> document, size_t batch_max) {
  SubmitRequest request{.topic = std::move(topic), .jobs = {}, .bytes = {}};
  const json::object& root = document->root();
  if (const json::value* jobs = root.if_contains("jobs")) {
    if (root.size() > 1) {
      const auto other = std::ranges::find_if(root, [](const auto& field) { return field.key() != "jobs"; });
      const std::string name = Shown(other->key());
      return FailField(Code::kInvalidArgument, name, "{} stands beside jobs: it belongs into each job", name);
    }
    const auto array = AsBatch("jobs", *jobs, batch_max);
    if (!array) return std::unexpected(array.error());
    TOCSIN_TRY(DecodeBatch(*document, **array, request.jobs));
  } else {
    TOCSIN_TRY(DecodeJob(*document, root, request.jobs.emplace_back()));
  }
  request.bytes = std::move(document);
  return request;
}

Status DecodeAmendment(Document& document, Amendment& amendment) {
  static constexpr Field<ContentDraft> kFields[] = {
      {"delay_ms", TakeDelay}, {"due_ms", TakeDue}, {"payload", TakePayload}, {"payload_base64", TakeBase64}};
  ContentDraft draft{.document = document};
  TOCSIN_TRY(ReadFields(draft, document.root(), kFields));
  TOCSIN_TRY(OneOfBoth(draft));
  const bool reschedules = draft.delay || draft.due;
  if (!reschedules && !draft.payload) {
    return Fail(Code::kInvalidArgument, "nothing to change: give delay_ms, due_ms, payload or payload_base64");
  }
  amendment.kind = reschedules ? AmendKind::kReschedule : AmendKind::kPayload;
  amendment.timeline = draft.due ? Timeline::kUtc : Timeline::kSteady;
  amendment.delay = draft.delay.value_or(Millis(0));
  amendment.due = draft.due.value_or(Time{});
  amendment.payload = draft.payload;
  return {};
}

Status DecodeCount(const Document& document, CountEvent& event) {
  static constexpr Field<CountEvent> kFields[] = {
      {"event",
       [](CountEvent& e, std::string_view name, const json::value& v) { return Put(e.event, AsName(name, v)); }},
      {"by", [](CountEvent& e, std::string_view name,
                const json::value& v) { return Put(e.by, AsInteger(name, v, 1, kCountMax)); }},
  };
  TOCSIN_TRY(ReadFields(event, document.root(), kFields));
  if (!event.event.empty()) return {};
  return FailField(Code::kInvalidArgument, "event",
                   "event is missing: it names what is counted, so that a repeated call does not count twice");
}

Result<State> DecodeState(std::string_view text) {
  const auto state = std::ranges::find(kStateNames, text);
  if (state != std::end(kStateNames)) return static_cast<State>(state - std::begin(kStateNames));
  return FailField(Code::kInvalidArgument, "state", "state takes one of: {}", fmt::join(kStateNames, ", "));
}

Result<size_t> DecodeLimit(std::string_view text, size_t most) {
  size_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error == std::errc{} && end == text.data() + text.size() && limit >= 1 && limit <= most) return limit;
  return FailField(Code::kInvalidArgument, "limit", "limit is '{}': it takes an integer from 1 to {}", Shown(text),
                   most);
}

}  // namespace tocsin::http
