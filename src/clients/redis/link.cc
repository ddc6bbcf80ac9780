#include "clients/redis/link.h"

#include "base/log.h"

namespace tocsin::redis {

Link::Link(Context& context, Purpose purpose)
    : context_(context), purpose_(std::move(purpose)), rested_(context.io, [this] { Look(); }) {}

Link::~Link() {
  Requests none;
  Close(none, none);
}

void Link::Open() {
  if (state_ == State::kNew) Look();
}

void Link::Look() {
  state_ = State::kLocating;
  Locate();
}

void Link::ConnectTo(const Endpoint& endpoint) {
  if (state_ != State::kLocating) return;
  state_ = State::kConnecting;
  endpoint_ = endpoint;
  connection_ = std::make_shared<Connection>(
      context_, Connection::Plan{endpoint, purpose_.login, purpose_.use, purpose_.master_only},
      static_cast<Connection::Owner&>(*this));
  connection_->Start();
}

void Link::NotFound(const Error& why) {
  if (state_ == State::kLocating) Rest(why);
}

void Link::Rest(const Error& why) {
  // Log it once, not for every attempt.
  if (trouble_.empty()) LogWarn("{}; trying again until it is there", why.message);
  trouble_ = why.message;
  state_ = State::kResting;
  const Options& options = context_.options;
  pause_ = std::clamp(pause_ * 2, options.backoff_min, options.backoff_max);
  std::uniform_int_distribution<int64_t> jitter(pause_.count() / 2, pause_.count());
  rested_.Set(std::chrono::steady_clock::now() + Millis(jitter(context_.random)));
}

void Link::Renew() {
  if (state_ == State::kUp) {
    GiveBack(connection_->TakeUnsent());
    // Forget closes it if it has nothing left to answer.
    retired_.push_back(std::exchange(connection_, nullptr));
    Forget(*retired_.back());
  } else if (state_ == State::kConnecting) {
    Requests none;
    connection_->Close(none, none);
    connection_ = nullptr;
  } else if (state_ != State::kResting) {
    return;
  }
  rested_.Cancel();
  Look();
}

void Link::Drop(const Error& why) {
  if (connection_ != nullptr) connection_->Fail(why);
}

void Link::Close(Requests& sent, Requests& unsent) {
  state_ = State::kClosed;
  rested_.Cancel();
  for (const auto& connection : retired_) connection->Close(sent, unsent);
  if (connection_ != nullptr) connection_->Close(sent, unsent);
}

ServerHealth Link::Health() const {
  ServerHealth health;
  health.endpoint = endpoint_;
  health.connected = up();
  health.state = up() ? "connected" : trouble_.empty() ? "connecting" : trouble_;
  if (connection_ != nullptr) {
    health.role = connection_->role();
    health.last_round_trip = std::chrono::ceil<Millis>(connection_->last_round_trip());
  }
  return health;
}

void Link::Ready(Connection& /*connection*/) {
  state_ = State::kUp;
  if (std::exchange(was_up_, true)) context_.figures.reconnects->Add();
  Up();
}

void Link::Proved() {
  pause_ = Millis(0);
  if (!trouble_.empty()) LogInfo("Redis at {}: connected", endpoint_.Text());
  trouble_.clear();
}

void Link::Replied(Connection& connection, RequestPtr request, Reply reply) {
  const bool current = &connection == connection_.get();
  // Before Answered, which may close everything.
  if (current) {
    Proved();
  } else {
    Forget(connection);
  }
  Answered(std::move(request), std::move(reply), current);
}

void Link::Pushed(Connection& connection, const Reply& reply) {
  if (&connection == connection_.get()) Heard(reply);
}

void Link::Silent(Connection& connection) {
  if (&connection == connection_.get()) Hangs();
}

void Link::Overdue(Connection& connection, Requests requests) {
  const Error why{Code::kUnavailable,
                  fmt::format("Redis at {}: no answer within {} ms; whether the command was carried out is unknown",
                              connection.endpoint().Text(), context_.options.command_timeout.count()),
                  {}};
  Unknown(std::move(requests), why);
}

void Link::Lost(Connection& connection, const Error& why, Requests sent, Requests unsent) {
  const Error unknown{why.code, why.message + "; whether the command was carried out is unknown", {}};
  GiveBack(std::move(unsent));
  if (&connection == connection_.get()) {
    connection_ = nullptr;
    const bool was_up = state_ == State::kUp;
    Rest(why);
    if (was_up) Down();
  } else {
    Forget(connection);
  }
  if (!sent.empty()) Unknown(std::move(sent), unknown);
}

void Link::Forget(Connection& retired) {
  if (!retired.idle()) return;
  Requests none;
  retired.Close(none, none);
  std::erase_if(retired_, [&](const auto& one) { return one.get() == &retired; });
}

}  // namespace tocsin::redis
