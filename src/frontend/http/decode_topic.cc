// What is said of topics.
#include "frontend/http/decode.h"
#include "frontend/http/fields.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;

/// Ranges are the topic's own to check: what does not fit the type is the only thing refused here.
template <auto kMember>
Status TakeNumber(TopicChange& change, std::string_view name, const json::value& value) {
  using Number = typename std::remove_cvref_t<decltype(change.*kMember)>::value_type;
  constexpr bool kFits = sizeof(Number) >= sizeof(int64_t);
  constexpr int64_t kMax = kFits ? std::numeric_limits<int64_t>::max() : std::numeric_limits<uint32_t>::max();
  return Put(change.*kMember, AsAtLeast(name, value, 0, kMax));
}

constexpr Field<TopicChange> kFields[] = {
    {"slots", TakeNumber<&TopicChange::slots>},
    {"capacity_jobs", TakeNumber<&TopicChange::capacity_jobs>},
    {"capacity_bytes", TakeNumber<&TopicChange::capacity_bytes>},
    {"lease_ms",
     [](TopicChange& c, std::string_view name, const json::value& v) { return Put(c.lease, AsMillis(name, v)); }},
    {"max_attempts", TakeNumber<&TopicChange::max_attempts>},
    {"backoff_base_ms", [](TopicChange& c, std::string_view name,
                           const json::value& v) { return Put(c.backoff_base, AsMillis(name, v)); }},
    {"backoff_max_ms",
     [](TopicChange& c, std::string_view name, const json::value& v) { return Put(c.backoff_max, AsMillis(name, v)); }},
    {"count_limit", TakeNumber<&TopicChange::count_limit>},
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
