#include "clients/redis/inquiry.h"

namespace tocsin::redis {

Inquiry::Inquiry(Context& context, Question question, Done done)
    : context_(context),
      question_(std::move(question)),
      done_(std::move(done)),
      patience_(context.io, [this] { AskNext(); }) {
  patience_.Set(std::chrono::steady_clock::now());
}

Inquiry::~Inquiry() { CloseAll(); }

void Inquiry::AskNext() {
  if (next_ == question_.servers.size()) {
    if (open_.empty()) End(std::unexpected(trouble_));
    return;
  }
  const Connection::Plan plan{question_.servers[next_++], question_.login};
  open_.push_back(std::make_shared<Connection>(context_, plan, static_cast<Connection::Owner&>(*this)));
  open_.back()->Start();
  patience_.Set(std::chrono::steady_clock::now() + kPatience);
}

void Inquiry::Ready(Connection& connection) {
  const TimePoint deadline = std::chrono::steady_clock::now() + context_.options.connect_timeout;
  connection.Send(std::make_unique<Request>(Request{.command = question_.command, .deadline = deadline}));
}

void Inquiry::Replied(Connection& connection, RequestPtr /*request*/, Reply reply) {
  Status useful = question_.check(connection.endpoint(), reply);
  useful ? End({}) : Useless(connection, useful.error());
}

void Inquiry::Overdue(Connection& connection, Requests /*requests*/) {
  Useless(connection, Fail(Code::kUnavailable, "Redis at {}: no answer within {} ms", connection.endpoint().Text(),
                           context_.options.connect_timeout.count())
                          .error());
}

void Inquiry::Lost(Connection& connection, const Error& why, Requests /*sent*/, Requests /*unsent*/) {
  Useless(connection, why);
}

void Inquiry::Useless(Connection& connection, const Error& why) {
  trouble_ = why;
  Requests none;
  connection.Close(none, none);
  std::erase_if(open_, [&](const auto& one) { return one.get() == &connection; });
  patience_.Set(std::chrono::steady_clock::now());
}

void Inquiry::End(Status status) {
  CloseAll();
  std::exchange(done_, nullptr)(std::move(status));
}

void Inquiry::CloseAll() {
  Requests none;
  for (const auto& connection : open_) connection->Close(none, none);
  open_.clear();
  patience_.Cancel();
}

}  // namespace tocsin::redis
