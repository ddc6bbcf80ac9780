// What is said of topics.
#include "frontend/http/decode.h"
#include "frontend/http/fields.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;

/// What else holds for the number is the topic's own to check.
template <auto kMember, int64_t kMin = 0, int64_t kMax = std::numeric_limits<int64_t>::max()>
Status TakeNumber(TopicChange& change, std::string_view name, const json::value& value) {
  return Put(change.*kMember, AsInteger(name, value, kMin, kMax));
}

constexpr Field<TopicChange> kFields[] = {
    {"slots", TakeNumber<&TopicChange::slots, 1, kSlotsMax>},
    {"capacity_jobs", TakeNumber<&TopicChange::capacity_jobs>},
    {"capacity_bytes", TakeNumber<&TopicChange::capacity_bytes>},
    {"lease_ms",
     [](TopicChange& c, std::string_view name, const json::value& v) { return Put(c.lease, AsMillis(name, v)); }},
    {"max_attempts", TakeNumber<&TopicChange::max_attempts, 1, kAttemptsMax>},
    {"backoff_base_ms", [](TopicChange& c, std::string_view name,
                           const json::value& v) { return Put(c.backoff_base, AsMillis(name, v)); }},
    {"backoff_max_ms",
     [](TopicChange& c, std::string_view name, const json::value& v) { return Put(c.backoff_max, AsMillis(name, v)); }},
    {"count_limit", TakeNumber<&TopicChange::count_limit, 1, kCountMax>},
    {"retention_ms",
     [](TopicChange& c, std::string_view name, const json::value& v) { return Put(c.retention, AsMillis(name, v)); }},
    {"paused",
     [](TopicChange& c, std::string_view name, const json::value& v) { return Put(c.paused, AsBool(name, v)); }},
};

}  // namespace

Result<TopicChange> DecodeTopicChange(const Document& document) {
  TopicChange change;
  TOCSIN_TRY(ReadFields(change, document.root(), kFields));
  return change;
}

}  // namespace tocsin::http
