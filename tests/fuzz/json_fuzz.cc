// Any bytes as the body of every call, as a query and as the pieces of a path: decoded or refused with an error that
// can be shown, never a crash. What we write as JSON, base64 or percent escapes is read back as the same bytes.
#include <cstdint>
#include <string>

#include <boost/json/parse.hpp>

#include "base/result.h"
#include "frontend/http/decode.h"
#include "frontend/http/encode.h"
#include "frontend/http/json_writer.h"
#include "frontend/http/router.h"

namespace tocsin::http {
namespace {

constexpr size_t kFewJobs = 50;

void CheckError(const Error& error) {
  const boost::json::value value = boost::json::parse(EncodeError(error));
  TOCSIN_CHECK(!value.at("error").at("message").as_string().empty());
  TOCSIN_CHECK(RowOf(error.code).http >= 400);
}

template <class T>
void CheckError(const Result<T>& result) {
  if (!result) CheckError(result.error());
}

Result<std::shared_ptr<Document>> Parse(std::string_view body) {
  static const auto parser = MakeParser();
  return Document::Parse(parser, body);
}

void CheckSubmit(const Result<SubmitRequest>& request) {
  CheckError(request);
  if (!request) return;
  TOCSIN_CHECK(!request->jobs.empty() && request->jobs.size() <= kFewJobs);
  for (const NewJob& job : request->jobs) {
    TOCSIN_CHECK(IsUtf8(job.id) && IsUtf8(job.key));
    TOCSIN_CHECK(job.delay >= Millis(0));
    for (const HeaderView& header : job.headers) TOCSIN_CHECK(IsUtf8(header.name) && IsUtf8(header.value));
  }
}

void DecodeAll(std::string_view body) {
  auto document = Parse(body);
  CheckError(document);
  if (!document) return;
  CheckSubmit(DecodeSubmit("t", *document, kFewJobs));
  for (const auto [verb, kind] :
       {std::pair(api::VerbId::kAckJobs, SettleKind::kAck), std::pair(api::VerbId::kNackJobs, SettleKind::kNack),
        std::pair(api::VerbId::kExtendJobs, SettleKind::kExtend)}) {
    CheckError(DecodeSettle(VerbOf(verb), kind, "t", *document, kFewJobs));
  }
  CheckError(DecodeTopicChange(**document));
  for (const api::Verb& verb : api::Verbs()) {
    Decoded decoded;
    CheckError(DecodeBody(**document, (*document)->root(), verb.fields, decoded));
    CheckError(CheckTogether(verb.fields, api::Wire::kJson, decoded.arguments));
    CheckError(AmendmentOf(api::Wire::kJson, decoded.arguments));
  }
}

void Names(std::string_view text) {
  api::Arguments arguments;
  for (const char* name : {"state", "limit", "cursor"}) {
    CheckError(DecodeQuery({{name, std::string(text)}}, VerbOf(api::VerbId::kListJobs).fields, arguments));
  }
  CheckError(ParseQuery(text, {"state", "limit", "cursor", "key"}));
  if (const auto bytes = DecodeBase64(text)) {
    std::string again;
    AppendBase64(again, *bytes);
    TOCSIN_CHECK(again == text);
  }
  static_cast<void>(DecodePercent(text, true));
}

std::string PayloadOf(std::string_view body) {
  const auto document = Parse(body);
  TOCSIN_CHECK(document);
  const auto request = DecodeSubmit("t", *document, 1);
  TOCSIN_CHECK(request);
  return std::string(request->jobs.front().payload);
}

void RoundTrip(std::string_view bytes) {
  std::string body = "{\"payload_base64\":\"";
  AppendBase64(body, bytes);
  TOCSIN_CHECK(PayloadOf(body + "\"}") == bytes);

  if (IsUtf8(bytes)) {
    body = "{\"payload\":";
    AppendString(body, bytes);
    TOCSIN_CHECK(PayloadOf(body + "}") == bytes);
  }

  std::string escaped;
  AppendPercent(escaped, bytes);
  TOCSIN_CHECK(DecodePercent(escaped, false) == bytes);
  TOCSIN_CHECK(DecodePercent(escaped, true) == bytes);
}

}  // namespace
}  // namespace tocsin::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tocsin::http::DecodeAll(bytes);
  tocsin::http::Names(bytes);
  tocsin::http::RoundTrip(bytes);
  return 0;
}
