// Whatever a server answers over RESP, the command's reader gives the same replies for it in one piece and in many, and
// their JSON is valid UTF-8; never a crash, a hang, or memory that the bytes do not account for.
//
// Input: the size of the pieces, from 1 to 256; the bytes of the wire.
#include <string>

#include "base/check.h"
#include "base/text.h"
#include "cli/api.h"
#include "cli/resp_calls.h"
#include "cli/resp_json.h"

using tocsin::cli::RespReader;
using tocsin::cli::RespValue;

namespace {

/// All replies as JSON, and how it ended.
std::string ReadAll(std::string_view wire, size_t piece) {
  RespReader reader;
  std::string seen;
  for (size_t at = 0; at < wire.size(); at += piece) {
    reader.Append(wire.substr(at, piece));
    for (;;) {
      const auto value = reader.Next();
      if (!value) return seen + "error";
      if (!*value) break;
      seen += boost::json::serialize(tocsin::cli::ToJson(**value));
      seen += boost::json::serialize(tocsin::cli::JobJson(**value));
      seen += boost::json::serialize(tocsin::cli::DeliveredJson(**value));
      seen += boost::json::serialize(tocsin::cli::StatsJson((*value)->text));
      seen += '\n';
    }
  }
  return seen + "more";
}

/// Every call must bear every reply.
void AnswerAll(std::string_view wire) {
  RespReader reader;
  reader.Append(wire);
  const auto value = reader.Next();
  if (!value || !*value) return;
  const boost::json::object nothing;
  const boost::json::object event{{"event", "e"}};
  const boost::json::object tokens{{"tokens", {"AAABAAAAAAAAAAEAAAAAAQAA"}}};
  const boost::json::object jobs{{"jobs", {boost::json::object(), boost::json::object()}}};
  const auto answer = [&](std::string_view method, std::string_view target, const boost::json::object& body) {
    const auto plan = tocsin::cli::PlanCall(method, target, body);
    TOCSIN_CHECK(plan.has_value());
    const auto object = tocsin::cli::AnswerOf(*plan, std::vector(plan->request.count, **value));
    TOCSIN_CHECK(object ? tocsin::IsUtf8(boost::json::serialize(*object)) : !object.error().message.empty());
  };
  answer("POST", "/v1/topics/t/jobs", nothing);
  answer("POST", "/v1/topics/t/jobs", jobs);
  for (const std::string_view target :
       {"/v1/topics", "/v1/topics/t", "/v1/topics/t/jobs", "/v1/topics/t/jobs/1", "/v1/stats"}) {
    answer("GET", target, nothing);
  }
  answer("PATCH", "/v1/topics/t/jobs/1", nothing);
  answer("DELETE", "/v1/topics/t/jobs/1", nothing);
  answer("POST", "/v1/topics/t/jobs/1/count", event);
  answer("POST", "/v1/topics/t/reserve", nothing);
  answer("POST", "/v1/topics/t/ack", tokens);
  answer("POST", "/v1/topics/t/purge", nothing);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string wire(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string seen = ReadAll(wire, std::max<size_t>(wire.size(), 1));
  TOCSIN_CHECK(wire.empty() || seen == ReadAll(wire, size_t{data[0]} + 1));
  TOCSIN_CHECK(tocsin::IsUtf8(seen));
  AnswerAll(wire);
  return 0;
}
