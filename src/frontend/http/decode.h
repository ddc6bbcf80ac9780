// JSON bodies -> requests of the service. Types, names and shapes are checked here, and ranges as far as they are known
// here; the service checks them all.
//
// Every error names its field by path (jobs[3].delay_ms). A decoded request's views point into its Document, which the
// request keeps alive (`bytes`).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parser.hpp>
#include <boost/json/value.hpp>

#include "base/result.h"
#include "core/service.h"

namespace tocsin::http {

/// Reused by the small requests of a connection: it keeps its stack.
boost::json::parser MakeParser();

/// One parsed body. Its strings live in one arena.
class Document {
 public:
  /// kInvalidArgument, with the offset, where `body` is not JSON or nests deeper than 32; or is no object. kTooLarge
  /// where it has more values than any batch needs. Bodies over 16 KiB leave nothing in `parser`.
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

/// One job, or {"jobs":[...]} with at most `batch_max`.
Result<SubmitRequest> DecodeSubmit(std::string topic, std::shared_ptr<Document> document, size_t batch_max);
/// A new due time, a new payload or both; the job's name is the caller's to set.
Status DecodeAmendment(Document& document, Amendment& amendment);
/// {"event","by"}.
Status DecodeCount(const Document& document, CountEvent& event);
Result<ReserveRequest> DecodeReserve(std::string topic, const Document& document, const Limits& limits);
/// {"tokens":[...]} and what the kind takes besides, the same for each.
Result<SettleRequest> DecodeSettle(SettleKind kind, std::string topic, std::shared_ptr<Document> document,
                                   const Limits& limits);
Result<TopicChange> DecodeTopicChange(const Document& document);
/// {"ms"} of POST /v1/clock/advance.
Result<Millis> DecodeAdvance(const Document& document);
/// For calls that take no field.
Status DecodeNothing(const Document& document);

// Of a query.
Result<State> DecodeState(std::string_view text);
Result<size_t> DecodeLimit(std::string_view text, size_t most);

}  // namespace tocsin::http
