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

std::optional<Decoded> Call::Decode() {
  struct Kept {
    std::vector<std::string> params;
    Query query;
    std::shared_ptr<Document> document;
  };
  auto document = OptionalBody();
  if (document == nullptr) return std::nullopt;
  const auto kept = std::make_shared<Kept>(std::move(params), std::move(query), std::move(document));
  Decoded decoded{.bytes = kept};
  if (verb->HasTopic()) decoded.topic = kept->params[0];
  if (verb->HasId()) decoded.arguments.job.id = kept->params[1];
  Status status = DecodeQuery(kept->query, verb->fields, decoded.arguments);
  if (status) status = DecodeBody(*kept->document, kept->document->root(), verb->fields, decoded);
  if (status) status = CheckTogether(verb->fields, api::Wire::kJson, decoded.arguments);
  if (status) return decoded;
  answer.Fail(status.error());
  return std::nullopt;
}

void Call::Park(ReserveId id) { session.Park(id); }

}  // namespace tocsin::http
