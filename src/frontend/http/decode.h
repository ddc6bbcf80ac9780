// JSON bodies and queries -> requests of the service, by the tables of fields (api/verbs.h). Types, names and fixed
// ranges are checked here; the service checks the limits of the node.
//
// Every error names its field by path (jobs[3].delay_ms). A decoded request's views point into its Document, which the
// request keeps alive (`bytes`).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>
#include <boost/json/storage_ptr.hpp>
#include <boost/json/value.hpp>

#include "api/verbs.h"
#include "base/result.h"
#include "core/service.h"
#include "frontend/http/router.h"
#include "net/budget.h"

namespace tocsin::http {

/// Parses the small bodies of a shard, one after the other: it keeps its stack.
class BodyParser;
std::shared_ptr<BodyParser> MakeParser(boost::json::storage_ptr memory = {});

/// What is checked while a body is parsed.
struct BodyLimits {
  size_t batch = SIZE_MAX;          // elements of an array right below the root, except for a payload
  size_t payload_bytes = SIZE_MAX;  // no string of a call is longer, except that Base64 is
  net::Budget* budget = nullptr;    // charged for the document; null: nothing is charged
  net::Account account = {};
};

/// One parsed body. Its strings live in one arena. Of a payload that is an object or an array it has an empty one.
class Document {
 public:
  static constexpr size_t kDepthMax = 32;

  /// kInvalidArgument, with the offset, if `body` is not a JSON object, nests deeper than 32 or has a key twice in one
  /// object. kTooLarge if it has more values than any batch needs, or an object has more keys than any call takes.
  /// kOverloaded if the budget has no room. Bodies over 16 KiB leave nothing in `parser`.
  static Result<std::shared_ptr<Document>> Parse(const std::shared_ptr<BodyParser>& parser, std::string_view body,
                                                 const BodyLimits& limits = {});

  Document(std::string_view body, net::Budget* budget);

  const boost::json::object& root() const { return root_->as_object(); }
  /// The text of the value of `payload`, as it was sent: of the root, or of this element of its `jobs`. Empty if there
  /// is none. Only while the body is there.
  std::string_view PayloadSource(size_t job);
  /// A decoded string, for as long as the document lives.
  std::string_view Keep(std::string bytes) { return kept_.emplace_back(std::move(bytes)); }

 private:
  friend class StepParser;

  static std::unexpected<Error> NotJson(const boost::system::error_code& error, size_t at);

  std::optional<net::Charge> charge_;  // for what it takes beyond the body's text
  boost::json::monotonic_resource arena_;
  std::optional<boost::json::value> root_;
  std::string_view body_;                                         // that it was parsed from
  std::optional<std::vector<std::string_view>> payload_sources_;  // by job; found when one is needed
  std::deque<std::string> kept_;
};

/// What a call says, checked against the fields of its verb.
struct Decoded {
  api::Arguments arguments;
  const boost::json::value* tokens = nullptr;
  size_t job = 0;             // of a batch: the index of the one that is decoded
  bool json_payload = false;  // the payload is JSON itself, not a string
  std::string topic;
  Bytes bytes;  // keeps alive what the arguments point into
};
/// kUnknownField for a name that is not among `fields`. Does not look at what is missing.
Status DecodeBody(Document& document, const boost::json::object& object, std::span<const api::Field> fields,
                  Decoded& decoded);
Status DecodeQuery(const Query& query, std::span<const api::Field> fields, api::Arguments& arguments);

/// One job, or {"jobs":[...]} with at most `batch_max`.
Result<SubmitRequest> DecodeSubmit(std::string topic, std::shared_ptr<Document> document, size_t batch_max);
/// {"tokens":[...]} and what the kind takes, the same for each.
Result<SettleRequest> DecodeSettle(const api::Verb& verb, SettleKind kind, std::string topic,
                                   std::shared_ptr<Document> document, size_t batch_max);
Result<TopicChange> DecodeTopicChange(const Document& document);

// JSON values -> typed values, with errors that name the field.

inline std::string_view View(const boost::json::string& text) { return {text.data(), text.size()}; }

Result<std::string_view> AsText(std::string_view name, const boost::json::value& value);
/// An integer from `low` to `high`; 1.0 and 1e3 are not integers.
Result<int64_t> AsInteger(std::string_view name, const boost::json::value& value, int64_t low, int64_t high);
/// The array of a batch, at most `batch_max` long and not empty.
Result<const boost::json::array*> AsBatch(std::string_view name, const boost::json::value& value, size_t batch_max);
Result<bool> AsBool(std::string_view name, const boost::json::value& value);

/// The error for a name that this call does not know, with the nearest known one: most unknown names are typing errors.
std::unexpected<Error> UnknownField(std::string_view name, std::span<const std::string_view> known);

/// `error` with the field's path put before its field's name.
Error Within(Error error, std::string_view path);

/// An error of the service in the words of the wire: milliseconds for spans and moments (delay is delay_ms), and in a
/// batch the path of the element.
Error OnTheWire(Error error);

}  // namespace tocsin::http
