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
#include <boost/json/parser.hpp>
#include <boost/json/value.hpp>

#include "api/verbs.h"
#include "base/result.h"
#include "core/service.h"
#include "frontend/http/router.h"

namespace tocsin::http {

/// Reused by the small requests of a shard: it keeps its stack.
boost::json::parser MakeParser();

/// One parsed body. Its strings live in one arena.
class Document {
 public:
  /// kInvalidArgument, with the offset, if `body` is not a JSON object or nests deeper than 32. kTooLarge if it has
  /// more values than any batch needs. Bodies over 16 KiB leave nothing in `parser`.
  static Result<std::shared_ptr<Document>> Parse(boost::json::parser& parser, std::string_view body);

  explicit Document(size_t body_bytes);

  const boost::json::object& root() const { return root_->as_object(); }
  /// A decoded string, for as long as the document lives.
  std::string_view Keep(std::string bytes) { return kept_.emplace_back(std::move(bytes)); }

 private:
  static Result<std::shared_ptr<Document>> ParseWith(boost::json::parser& parser, std::string_view body);

  boost::json::monotonic_resource arena_;
  std::optional<boost::json::value> root_;
  std::deque<std::string> kept_;
};

/// Whether each object of a body names each of its keys once: the parser keeps the last of two without a word. `body`
/// is the valid JSON that `root` was parsed from. kInvalidArgument with the path of a key that comes twice, or of an
/// object before it that has more keys than any call takes; without a path if more than 1,000 keys have escapes.
Status CheckKeysAreUnique(std::string_view body, const boost::json::value& root);

/// What a call says, checked against the fields of its verb.
struct Decoded {
  api::Arguments arguments;
  const boost::json::value* tokens = nullptr;
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
