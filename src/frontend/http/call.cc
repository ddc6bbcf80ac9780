#include "frontend/http/call.h"

#include "base/check.h"
#include "frontend/http/decode.h"
#include "frontend/http/encode.h"
#include "frontend/http/session.h"

namespace tocsin::http {

Response ErrorResponse(const Error& error) { return {.status = RowOf(error.code).http, .body = EncodeError(error)}; }

Answer::Answer(std::shared_ptr<Session> session) : session_(std::move(session)) {}
Answer::Answer(Answer&&) noexcept = default;
Answer& Answer::operator=(Answer&&) noexcept = default;
Answer::~Answer() = default;

bool Answer::Wanted() const { return session_->open(); }

std::shared_ptr<net::Connection> Answer::connection() const { return session_; }

Status Answer::MakeRoom(size_t bytes) { return session_->MakeRoom(bytes); }

void Answer::Send(Response response) {
  TOCSIN_CHECK(session_ != nullptr);
  const auto session = std::exchange(session_, nullptr);
  session->Guard([&] { session->Send(std::move(response)); });
}

std::shared_ptr<Document> Call::Body() {
  auto document = Document::Parse(parser, body);
  if (document) return *std::move(document);
  answer.Fail(document.error());
  return nullptr;
}

std::shared_ptr<Document> Call::OptionalBody() {
  if (body.empty()) body = "{}";
  return Body();
}

std::string_view Call::QueryOr(std::string_view name, std::string_view fallback) const {
  const auto at = std::ranges::find(query, name, &Query::value_type::first);
  return at == query.end() ? fallback : std::string_view(at->second);
}

void Call::Park(ReserveId id) { session.Park(id); }

}  // namespace tocsin::http
