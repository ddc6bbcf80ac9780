#include "clients/redis/link.h"

#include "base/log.h"

namespace tocsin::redis {

Link::Link(Context& context, Connection::Plan plan)
    : context_(context), plan_(std::move(plan)), rested_(context.io, [this] { Look(); }) {}

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
  plan_.endpoint = endpoint;
  connection_ = std::make_shared<Connection>(context_, plan_, static_cast<Connection::Owner&>(*this));
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
  const std::string down = trouble_.empty() ? "connecting" : trouble_;
  ServerHealth health{.endpoint = endpoint(), .connected = up(), .state = up() ? "connected" : down};
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
  if (!trouble_.empty()) LogInfo("Redis at {}: connected", endpoint().Text());
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
  Unknown(
      std::move(requests),
      Fail(Code::kUnavailable, "Redis at {}: no answer within {} ms; whether the command was carried out is unknown",
           connection.endpoint().Text(), context_.options.command_timeout.count())
          .error());
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

CommandLink::CommandLink(Context& context, bool master_only, Owner& owner)
    : Link(context, {.login = {context.options.username, context.options.password}, .master_only = master_only}),
      owner_(owner),
      deadline_(context.io, [this] { Expire(TakeLate()); }) {}

void CommandLink::Send(RequestPtr request) {
  used_ = true;
  if (up()) return connection().Send(std::move(request));
  deadline_.SetEarlier(request->deadline);
  waiting_.push_back(std::move(request));
}

void CommandLink::Up() {
  Requests late = TakeLate();
  for (RequestPtr& request : waiting_) connection().Send(std::move(request));
  waiting_.clear();
  owner_.LinkUp(*this);
  // Last, because the callers may do anything, such as close the client.
  Expire(std::move(late));
}

void CommandLink::GiveBack(Requests unsent) {
  for (RequestPtr& request : unsent) deadline_.SetEarlier(request->deadline);
  waiting_.insert(waiting_.begin(), std::make_move_iterator(unsent.begin()), std::make_move_iterator(unsent.end()));
}

Requests CommandLink::TakeLate() {
  const TimePoint now = std::chrono::steady_clock::now();
  Requests late;
  TimePoint next = TimePoint::max();
  for (RequestPtr& request : waiting_) {
    if (request->deadline <= now) {
      late.push_back(std::move(request));
    } else {
      next = std::min(next, request->deadline);
    }
  }
  std::erase(waiting_, nullptr);
  deadline_.Set(next);
  return late;
}

void CommandLink::Expire(Requests late) {
  if (late.empty()) return;
  const std::string why =
      trouble().empty() ? fmt::format("there is no connection to Redis at {} yet", endpoint().Text()) : trouble();
  owner_.Failed(std::move(late), Error{Code::kUnavailable, fmt::format("not sent: {}", why), {}});
}

void CommandLink::Close(Requests& sent, Requests& unsent) {
  Link::Close(sent, unsent);
  for (RequestPtr& request : waiting_) unsent.push_back(std::move(request));
  waiting_.clear();
  deadline_.Cancel();
}

Subscription::Subscription(Context& context, Login login, Hooks hooks)
    : Link(context, {.login = std::move(login), .use = Connection::Use::kMessages}),
      hooks_(std::move(hooks)),
      beat_(context.io, [this] { Beat(); }) {}

void Subscription::Add(std::string channel, Client::Message message) {
  if (closed()) return;
  if (up()) {
    ++awaited_;
    connection().Tell(Command("SUBSCRIBE").Add(channel));
  }
  channels_.insert_or_assign(std::move(channel), std::move(message));
  Open();
}

void Subscription::Up() {
  Command subscribe("SUBSCRIBE");
  for (const auto& [channel, message] : channels_) subscribe.Add(channel);
  awaited_ = channels_.size();
  connection().Tell(subscribe);
  heard_ = true;
  Beat();
}

void Subscription::Heard(const Reply& reply) {
  heard_ = true;
  const ReplyView root = reply.root();
  if (root.error()) {
    return Drop(
        Fail(Code::kUnavailable, "Redis at {} refuses the subscription: {}", endpoint().Text(), root.text()).error());
  }
  if (root.size() < 3) return;
  if (root[0].text() == "subscribe") return Confirmed();
  if (root[0].text() != "message") return;
  const auto found = channels_.find(root[1].text());
  if (found != channels_.end()) found->second(root[1].text(), root[2].text());
}

void Subscription::Confirmed() {
  if (awaited_ == 0 || --awaited_ > 0) return;
  Proved();
  hooks_.back();
}

void Subscription::Beat() {
  if (!up()) return;
  const Options& options = context().options;
  const Millis beat = std::max(options.command_timeout / 2, options.beat_min);
  if (!std::exchange(heard_, false)) {
    return Drop(
        Fail(Code::kUnavailable, "Redis at {}: no sign of life for {} ms", endpoint().Text(), beat.count()).error());
  }
  connection().Tell(Command("PING"));
  beat_.Set(std::chrono::steady_clock::now() + beat);
}

}  // namespace tocsin::redis
