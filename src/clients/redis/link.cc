#include "clients/redis/link.h"

#include "base/log.h"
#include "clients/redis/slot_map.h"

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
  if (up()) Join(Command(sharded_ ? "SSUBSCRIBE" : "SUBSCRIBE").Add(channel), channel, 1);
  channels_.insert_or_assign(std::move(channel), std::move(message));
  Open();
}

void Subscription::Remove(std::string_view channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  if (up()) {
    connection().Tell(Command(sharded_ ? "SUNSUBSCRIBE" : "UNSUBSCRIBE").Add(channel));
    asked_.push_back({.kind = Asked::Kind::kLeave, .channel = std::string(channel), .answers = 1});
  }
  channels_.erase(found);
}

void Subscription::Up() {
  sharded_ = hooks_.moved && !std::exchange(plain_next_, false);
  awaited_ = 0;
  asked_.clear();
  if (sharded_) {
    // One by one: those of one command must have the same hash slot.
    for (const auto& [channel, message] : channels_) Join(Command("SSUBSCRIBE").Add(channel), channel, 1);
  } else if (!channels_.empty()) {
    Command subscribe("SUBSCRIBE");
    for (const auto& [channel, message] : channels_) subscribe.Add(channel);
    Join(subscribe, {}, channels_.size());
  }
  heard_ = true;
  Beat();
}

void Subscription::Join(const Command& command, std::string_view channel, size_t channels) {
  awaited_ += channels;
  asked_.push_back({.kind = Asked::Kind::kJoin, .channel = std::string(channel), .answers = channels});
  connection().Tell(command);
}

void Subscription::Heard(const Reply& reply) {
  heard_ = true;
  const ReplyView root = reply.root();
  if (root.error()) return Refused(root.text());
  if (root.size() < 3) return TakeAnswer(Asked::Kind::kPing);
  const std::string_view kind = root[0].text();
  const std::string_view channel = root[1].text();
  if (kind == "sunsubscribe") return Ended(channel);
  if (kind == "unsubscribe") return TakeAnswer(Asked::Kind::kLeave);
  if (kind == "subscribe" || kind == "ssubscribe") {
    TakeAnswer(Asked::Kind::kJoin);
    return Confirmed();
  }
  const auto found = channels_.find(channel);
  if (found != channels_.end() && (kind == "message" || kind == "smessage")) {
    found->second(channel, root[2].text());
  }
}

void Subscription::TakeAnswer(Asked::Kind kind) {
  if (asked_.empty() || asked_.front().kind != kind) return;
  if (--asked_.front().answers == 0) asked_.pop_front();
}

void Subscription::Ended(std::string_view channel) {
  // Answers come in the order of the questions: any other end is the server's own doing.
  const bool asked = !asked_.empty() && asked_.front().kind == Asked::Kind::kLeave && asked_.front().channel == channel;
  if (asked) {
    asked_.pop_front();
  } else if (channels_.contains(channel)) {
    hooks_.moved(channel);
  }
}

void Subscription::Refused(std::string_view error) {
  const auto redirect = ParseRedirect(error, endpoint());
  // The end of a moved channel may have crossed our SUNSUBSCRIBE and been taken for its answer; this is the real one.
  const bool about_another = asked_.empty() || asked_.front().kind == Asked::Kind::kPing ||
                             (redirect && HashSlot(asked_.front().channel) != redirect->hash_slot);
  if (redirect && about_another) return;
  Asked asked;
  if (!asked_.empty()) {
    asked = std::move(asked_.front());
    asked_.pop_front();
  }
  // A Redis that cannot save or is busy says so to PING, and its channels work.
  if (asked.kind != Asked::Kind::kJoin) return;
  if (sharded_ && redirect) {
    hooks_.moved(error);
    return Confirmed();
  }
  if (sharded_ && (error.starts_with("ERR unknown command") || error.starts_with("NOPERM"))) {
    plain_next_ = true;
    return Renew();
  }
  Drop(Fail(Code::kUnavailable, "Redis at {} refuses the subscription: {}", endpoint().Text(), error).error());
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
  asked_.push_back({.kind = Asked::Kind::kPing, .channel = {}, .answers = 1});
  beat_.Set(std::chrono::steady_clock::now() + beat);
}

}  // namespace tocsin::redis
