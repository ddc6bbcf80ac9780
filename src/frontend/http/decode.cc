#include "frontend/http/decode.h"

#include "frontend/http/fields.h"
#include "frontend/http/text.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;

constexpr size_t kDepthMax = 32;
constexpr size_t kArenaMin = 1024;
// A parser keeps its stack, which is many times the size of a body of small values: a connection keeps a small one
// only.
constexpr size_t kKeptParserBytes = 16 << 10;
constexpr size_t kValuesMin = 1 << 20;
constexpr size_t kBytesPerValue = 8;

bool OpensValue(char c) { return c == ',' || c == '[' || c == '{'; }

/// A value takes more than ten times the two bytes that its text may have, in the parser and again in the document.
/// Bounding the values bounds the memory, which is given back with the request, to a small multiple of the body.
size_t ValuesMax(std::string_view body) { return std::max(kValuesMin, body.size() / kBytesPerValue); }

bool HasTooManyValues(std::string_view body) {
  const size_t max = ValuesMax(body);
  if (body.size() <= max) return false;
  // Fast, and enough for nearly all bodies: those in strings count as well.
  if (static_cast<size_t>(std::ranges::count_if(body, OpensValue)) <= max) return false;
  size_t values = 0;
  bool in_string = false;
  for (size_t i = 0; i < body.size(); ++i) {
    if (in_string && body[i] == '\\') {
      ++i;
    } else if (body[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && OpensValue(body[i])) {
      ++values;
    }
  }
  return values > max;
}

/// A job being read, with what its fields say only together.
struct JobDraft {
  NewJob& job;
  Document& document;
  bool has_delay = false;
  bool has_due = false;
  bool has_payload = false;
};

Status TakePayload(JobDraft& draft, std::string_view name, std::string_view payload) {
  if (draft.has_payload) {
    return FailField(Code::kInvalidArgument, std::string(name), "a job has either payload or payload_base64, not both");
  }
  draft.has_payload = true;
  draft.job.payload = payload;
  return {};
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

// In the order of the enums Trigger and OnConflict.
constexpr std::string_view kTriggers[] = {"time", "count", "either"};
constexpr std::string_view kOnConflict[] = {"reject", "replace", "keep"};

/// Puts a Result into `to`, or passes its error on.
template <class To, class From>
Status Put(To& to, Result<From> value) {
  if (!value) return std::unexpected(std::move(value).error());
  to = static_cast<To>(*value);
  return {};
}

constexpr Field<JobDraft> kJobFields[] = {
    {"id", [](JobDraft& d, std::string_view name, const json::value& v) { return Put(d.job.id, AsText(name, v)); }},
    {"key", [](JobDraft& d, std::string_view name, const json::value& v) { return Put(d.job.key, AsText(name, v)); }},
    {"delay_ms",
     [](JobDraft& d, std::string_view name, const json::value& v) {
       d.has_delay = true;
       return Put(d.job.delay, AsInteger(name, v, 0, kDelayMax.count()));
     }},
    {"due_ms",
     [](JobDraft& d, std::string_view name, const json::value& v) -> Status {
       int64_t due_ms = 0;
       TOCSIN_TRY(Put(due_ms, AsAtLeast(name, v, 0, ToMs(kNever) - 1)));
       d.has_due = true;
       d.job.due = FromMs(due_ms);
       return {};
     }},
    {"payload",
     [](JobDraft& d, std::string_view name, const json::value& v) -> Status {
       const auto text = AsText(name, v);
       if (!text) return std::unexpected(text.error());
       return TakePayload(d, name, *text);
     }},
    {"payload_base64",
     [](JobDraft& d, std::string_view name, const json::value& v) -> Status {
       const auto text = AsText(name, v);
       if (!text) return std::unexpected(text.error());
       auto bytes = DecodeBase64(*text);
       if (!bytes) {
         return FailField(Code::kInvalidArgument, std::string(name), "{} is not base64 with padding (RFC 4648)", name);
       }
       return TakePayload(d, name, d.document.Keep(*std::move(bytes)));
     }},
    {"headers", TakeHeaders},
    {"trigger", [](JobDraft& d, std::string_view name,
                   const json::value& v) { return Put(d.job.trigger, TakeChoice<Trigger>(name, v, kTriggers)); }},
    {"count", [](JobDraft& d, std::string_view name,
                 const json::value& v) { return Put(d.job.count, AsInteger(name, v, 1, kCountMax)); }},
    {"max_attempts",
     [](JobDraft& d, std::string_view name, const json::value& v) {
       return Put(d.job.max_attempts, AsAtLeast(name, v, 1, std::numeric_limits<uint32_t>::max()));
     }},
    {"on_conflict",
     [](JobDraft& d, std::string_view name, const json::value& v) {
       return Put(d.job.on_conflict, TakeChoice<OnConflict>(name, v, kOnConflict));
     }},
};

Status DecodeJob(Document& document, const json::object& object, NewJob& job) {
  JobDraft draft{.job = job, .document = document};
  TOCSIN_TRY(ReadFields(draft, object, kJobFields));
  // An empty name is a mistake of the sender, not a request for a server's id.
  if (job.id.empty() && object.contains("id")) {
    return FailField(Code::kInvalidArgument, "id", "id is empty: it takes 1 to 256 bytes");
  }
  if (job.key.empty() && object.contains("key")) {
    return FailField(Code::kInvalidArgument, "key", "key is empty: it takes 1 to 256 bytes");
  }
  if (draft.has_delay && draft.has_due) {
    return FailField(Code::kInvalidArgument, "due_ms", "a job has either delay_ms or due_ms, not both");
  }
  if (job.trigger == Trigger::kEither && !draft.has_delay && !draft.has_due) {
    return FailField(Code::kInvalidArgument, "delay_ms", "trigger either needs delay_ms or due_ms as well");
  }
  job.timeline = draft.has_due ? Timeline::kUtc : Timeline::kSteady;
  return {};
}

/// The array of a batch, at most `batch_max` long and not empty.
Result<const json::array*> AsBatch(std::string_view name, const json::value& value, size_t batch_max) {
  const auto* array = value.if_array();
  if (array == nullptr) return FailField(Code::kInvalidArgument, std::string(name), "{} takes an array", name);
  if (array->empty() || array->size() > batch_max) {
    return FailField(Code::kInvalidArgument, std::string(name), "{} has {} elements: the range is 1 to {}", name,
                     array->size(), batch_max);
  }
  return array;
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

json::parser MakeParser() {
  json::parse_options options;
  options.max_depth = kDepthMax;
  return json::parser({}, options);
}

// Parsed JSON takes more room than its text: one block for most bodies.
Document::Document(size_t body_bytes) : arena_(std::max(kArenaMin, body_bytes * 2)) {}

Result<std::shared_ptr<Document>> Document::Parse(json::parser& parser, std::string_view body) {
  if (body.size() <= kKeptParserBytes) return ParseWith(parser, body);
  if (HasTooManyValues(body)) {
    return Fail(Code::kTooLarge, "the body has more than {} values", ValuesMax(body));
  }
  json::parser once = MakeParser();
  return ParseWith(once, body);
}

Result<std::shared_ptr<Document>> Document::ParseWith(json::parser& parser, std::string_view body) {
  auto document = std::make_shared<Document>(body.size());
  parser.reset(&document->arena_);
  boost::system::error_code error;
  const size_t parsed = parser.write(body.data(), body.size(), error);
  if (error) {
    parser.reset();
    return Fail(Code::kInvalidArgument, "the body is not valid JSON: {} at byte {}; nesting may be {} deep",
                error.message(), parsed, kDepthMax);
  }
  document->root_.emplace(parser.release());
  if (!document->root_->is_object()) return Fail(Code::kInvalidArgument, "the body is not a JSON object");
  return document;
}

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

Result<ReserveRequest> DecodeReserve(std::string topic, const Document& document, const Limits& limits) {
  struct Draft {
    ReserveRequest request;
    const Limits& limits;
  };
  static constexpr Field<Draft> kFields[] = {
      {"max",
       [](Draft& d, std::string_view name, const json::value& v) {
         return Put(d.request.max, AsInteger(name, v, 1, static_cast<int64_t>(d.limits.batch)));
       }},
      {"wait_ms",
       [](Draft& d, std::string_view name, const json::value& v) {
         return Put(d.request.wait, AsInteger(name, v, 0, d.limits.wait_max.count()));
       }},
      {"lease_ms",
       [](Draft& d, std::string_view name, const json::value& v) {
         return Put(d.request.lease, AsInteger(name, v, 1, d.limits.lease_max.count()));
       }},
  };
  Draft draft{.request = {.topic = std::move(topic)}, .limits = limits};
  TOCSIN_TRY(ReadFields(draft, document.root(), kFields));
  return std::move(draft.request);
}

Result<SettleRequest> DecodeAck(std::string topic, const Document& document, size_t batch_max) {
  struct Draft {
    const json::value* tokens = nullptr;
  };
  static constexpr Field<Draft> kFields[] = {
      {"tokens",
       [](Draft& d, std::string_view, const json::value& v) -> Status {
         d.tokens = &v;
         return {};
       }},
  };
  Draft draft;
  TOCSIN_TRY(ReadFields(draft, document.root(), kFields));
  if (draft.tokens == nullptr) return FailField(Code::kInvalidArgument, "tokens", "tokens is missing");
  const auto array = AsBatch("tokens", *draft.tokens, batch_max);
  if (!array) return std::unexpected(array.error());

  SettleRequest request{.topic = std::move(topic), .settlements = {}, .bytes = {}};
  request.settlements.reserve((*array)->size());
  for (const json::value& element : **array) {
    const auto* text = element.if_string();
    const auto token = text == nullptr ? std::nullopt : ParseToken(View(*text));
    if (!token) {
      return FailField(Code::kInvalidArgument, fmt::format("tokens[{}]", request.settlements.size()),
                       "this is not a token that a reserve gave out");
    }
    request.settlements.push_back({.token = *token, .kind = SettleKind::kAck, .delay = {}, .reason = {}});
  }
  return request;
}

Result<Millis> DecodeAdvance(const Document& document) {
  struct Draft {
    std::optional<Millis> by;
  };
  static constexpr Field<Draft> kFields[] = {
      {"ms",
       [](Draft& d, std::string_view name, const json::value& v) -> Status {
         int64_t ms = 0;
         TOCSIN_TRY(Put(ms, AsInteger(name, v, 0, kDelayMax.count())));
         d.by = Millis(ms);
         return {};
       }},
  };
  Draft draft;
  TOCSIN_TRY(ReadFields(draft, document.root(), kFields));
  if (!draft.by) return FailField(Code::kInvalidArgument, "ms", "ms is missing");
  return *draft.by;
}

}  // namespace tocsin::http
