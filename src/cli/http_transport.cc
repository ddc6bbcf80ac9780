#include "cli/http_transport.h"

#include "cli/api.h"
#include "cli/output.h"

namespace tocsin::cli {
namespace {

/// The code of this name; a newer server may know more, and then the HTTP status decides.
Code CodeNamed(std::string_view name, unsigned status) {
  for (const ErrorRow& row : ErrorTable()) {
    if (row.name == name) return row.code;
  }
  for (const ErrorRow& row : ErrorTable()) {
    if (row.http == static_cast<int>(status)) return row.code;
  }
  return Code::kInternal;
}

std::unexpected<Error> ServerError(const json::object& error, unsigned status) {
  const std::string code = Printable(TextOf(error, "code"));
  const std::string field = Printable(TextOf(error, "field"));
  return FailField(CodeNamed(code, status), field, "{}: {}{}", code, Printable(TextOf(error, "message")),
                   field.empty() ? "" : fmt::format(" ({})", field));
}

/// An answer that no Tocsin server gives: something between here and it speaks, or something else listens there.
std::unexpected<Error> ForeignAnswer(const std::string& url, unsigned status) {
  if (status >= 502 && status <= 504) {
    return Fail(Code::kIo, "cannot reach the server behind {}: what listens there answered {}", url, status);
  }
  return Fail(Code::kInternal, "{} answered {} with something else than it should: is it a Tocsin server?", url,
              status);
}

/// What a submit that stored nothing answers with its status of an error.
bool HasOutcomes(const json::object& body) { return !ArrayOf(body, "jobs").empty(); }

}  // namespace

Result<json::object> HttpTransport::Call(std::string_view method, std::string_view target, const json::object* body,
                                         Millis limit) {
  auto answer = http_.Call(method, target, body == nullptr ? "" : json::serialize(*body), limit);
  if (!answer) return std::unexpected(std::move(answer).error());
  boost::system::error_code problem;
  json::value value = json::parse(answer->body, problem);
  if (problem || !value.is_object()) return ForeignAnswer(endpoint().url, answer->status);
  json::object& object = value.get_object();
  if (const json::object& error = ObjectOf(object, "error"); !error.empty()) {
    return ServerError(error, answer->status);
  }
  if (answer->status >= 300 && !HasOutcomes(object)) return ForeignAnswer(endpoint().url, answer->status);
  return std::move(object);
}

}  // namespace tocsin::cli
