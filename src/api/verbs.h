// The table of verbs: all that a server can be asked to do, with its names on every wire, the access that it needs, the
// fields that it takes and its answer. It drives the routes of HTTP, the commands of RESP, the commands of the command
// line, the OpenAPI document, and the tables in docs/http.md and docs/resp.md.
//
// To add a verb: an enumerator here and its row in verbs.cc; the use case in core; a handler in frontend/shared, or one
// for each door if it needs batches of its own. CONTRIBUTING.md names the files.
#pragma once

#include <span>
#include <string_view>

#include "api/field.h"
#include "auth/access.h"

namespace tocsin::api {

enum class VerbId : uint8_t {
  // The router takes the first row that matches, so what is called most stands first.
  kSubmitJobs,
  kReserveJobs,
  kAckJobs,
  kNackJobs,
  kExtendJobs,
  kCancelJob,
  kShowJob,
  kAmendJob,
  kFireJob,
  kCountJob,
  kListJobs,
  kTallyJobs,
  kListLeases,
  kListAllLeases,
  kRevokeLease,
  kPutTopic,
  kShowTopic,
  kDropTopic,
  kListTopics,
  kPauseTopic,
  kResumeTopic,
  kTestTopic,
  kPurgeTopic,
  kRedriveDead,
  kPurgeDead,
  kOperate,
  kListOperations,
  kShowOperation,
  kStopOperation,
  kRedriveJob,
  kRemoveDeadJob,
  kShowTopicLoad,
  kShowLoad,
  kListAlerts,
  kShowStats,
  kShowCluster,
  kAdvanceClock,
  kShowOpenApi,
  kShowRoot,
  kShowHealth,
  kShowReady,
  kShowMetrics,
  kBeginSession,
  kShowSession,
  kEndSession,
  kShowEvents,
  kShowHistory,
  kShowTopicHistory,
  kShowLateness,
  kListDeliveries,
};

/// The answer of HTTP to a call that worked.
struct AnswerDoc {
  std::string_view schema;  // its name in the OpenAPI document
  std::string_view doc;
  int status = 200;
};

struct Verb {
  VerbId id;
  std::string_view name;          // of the operation in the OpenAPI document
  std::string_view http;          // method and path, with {topic} and {id}
  std::string_view command = {};  // of RESP; empty: none
  std::string_view cli = {};      // of the command line; empty: none
  auth::Access access;
  std::string_view summary;       // one sentence, without its full stop
  std::string_view details = {};  // further sentences, or nothing
  AnswerDoc answer;
  std::string_view reply = {};  // of RESP, for docs/resp.md
  std::span<const Field> fields = {};
  bool takes_settings = false;       // of a topic (model/topic.h), in addition to its fields
  bool needs_virtual_clock = false;  // it is not there otherwise

  std::string_view Method() const { return http.substr(0, http.find(' ')); }
  std::string_view Path() const { return http.substr(http.find('/')); }
  bool HasTopic() const { return http.contains("{topic}"); }
  bool HasId() const { return http.contains("{id}"); }
  bool Changes() const { return Method() != "GET"; }
  /// Of HTTP: POST, PUT and PATCH.
  bool TakesBody() const { return http.starts_with('P'); }
  /// Whether the field is in the query, or in the object `where` of the body.
  bool InQuery(const Field& field) const { return field.in == In::kQuery || (field.in == In::kWhere && !TakesBody()); }
  bool InWhere(const Field& field) const { return field.in == In::kWhere && TakesBody(); }
  /// Whether the answer says what became of it.
  bool AnswersOutcome() const { return (HasId() && Changes()) || id == VerbId::kDropTopic || id == VerbId::kTestTopic; }
};

/// In the order of VerbId.
std::span<const Verb> Verbs();
const Verb& VerbOf(VerbId id);

}  // namespace tocsin::api
