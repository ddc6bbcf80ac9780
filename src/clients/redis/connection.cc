#include "clients/redis/connection.h"

namespace tocsin::redis {
namespace {

using boost::system::error_code;

constexpr size_t kReadBytes = 32 << 10;
constexpr size_t kKeptBytes = 1 << 20;  // kept of an empty buffer
// How long replicas may take. A WAIT holds up all commands of the connection, so it is short once replicas are missing.
constexpr Millis kWaitMax{500};
constexpr Millis kWaitAgainMax{100};

TimePoint Now() { return std::chrono::steady_clock::now(); }

/// Some users may not call ROLE, and some servers do not know it: the role is unknown then. Any other error would be
/// the answer to all commands.
bool RoleIsHidden(std::string_view error) {
  return error.starts_with("NOPERM") || error.starts_with("ERR unknown command");
}

/// A server's error about a login, without the password: a server that does not know AUTH repeats its arguments.
std::string_view WithoutPassword(std::string_view error, const std::string& password) {
  if (!error.starts_with("ERR unknown command") && !error.contains(password)) return error;
  return "it does not take AUTH";
}

Reply ErrorReply(std::string_view text) {
  ReplyBuilder builder;
  builder.Feed(fmt::format("-{}\r\n", text));
  auto reply = builder.Next();
  return reply && *reply ? *std::move(*reply) : Reply();
}

}  // namespace

Connection::Connection(Context& context, Plan plan, Owner& owner)
    : context_(context),
      plan_(std::move(plan)),
      owner_(&owner),
      stream_(context.io, context.tls.get()),
      flush_(context.io, [this] { Flush(); }),
      deadline_(context.io, [this] { CheckDeadlines(); }),
      buffer_(kReadBytes) {}

void Connection::Start() {
  deadline_.Set(Now() + context_.options.connect_timeout);
  stream_.Connect(plan_.endpoint.host, plan_.endpoint.port, context_.options.tls.verify,
                  [self = shared_from_this()](const error_code& error) { self->Connected(error); });
}

void Connection::Connected(const error_code& error) {
  if (closed_) return;
  if (error) return FailWith(error.message());
  Greet();
  Read();
}

void Connection::Greet() {
  const Login& login = plan_.login;
  if (!login.password.empty()) {
    Command auth("AUTH");
    if (!login.username.empty()) auth.Add(login.username);
    auth.Add(login.password);
    auth.Encode(out_, false);
    greeting_.push_back(Step::kAuth);
  }
  // Even if nobody needs the role: a server with too many clients accepts a connection and then closes it.
  Command("ROLE").Encode(out_, false);
  greeting_.push_back(Step::kRole);
  Flush();
}

void Connection::Greeted(const Reply& reply) {
  const Step step = greeting_.front();
  greeting_.pop_front();
  const ReplyView root = reply.root();
  if (step == Step::kAuth && root.error()) {
    return FailWith(fmt::format("AUTH is refused: {}", WithoutPassword(root.text(), plan_.login.password)));
  }
  if (step == Step::kRole) {
    if (root.error() && (plan_.master_only || !RoleIsHidden(root.text()))) {
      return FailWith(fmt::format("ROLE is refused: {}", root.text()));
    }
    const std::string_view role = root.size() > 0 ? root[0].text() : "";
    role_ = role == "slave" ? "replica" : role;
    if (plan_.master_only && role_ != "master") {
      return FailWith(fmt::format("it is a {}, not the master", role_));
    }
  }
  if (!greeting_.empty()) return;
  ready_ = true;
  deadline_.Cancel();
  owner_->Ready(*this);
}

bool Connection::KnowsScript(const Script& script) {
  if (std::ranges::find(known_, script.sha()) != known_.end()) return true;
  known_.push_back(script.sha());
  return false;
}

void Connection::Send(RequestPtr request) {
  if (request->asking) {
    Command("ASKING").Encode(out_, false);
    under_way_.push_back({nullptr, {}});
    ++unsent_;
  }
  // The first call of a script on a connection carries its source: after a NOSCRIPT, later commands would overtake it.
  const Script* script = request->command.script();
  const bool whole = script != nullptr && (!KnowsScript(*script) || request->whole_script);
  request->command.Encode(out_, whole);
  wait_wanted_ = wait_wanted_ || MustReplicate(*request);
  deadline_.SetEarlier(request->deadline);
  under_way_.push_back({std::move(request), {}});
  ++unsent_;
  if (!writing_) flush_.Schedule();
}

void Connection::Tell(const Command& command) {
  command.Encode(out_, false);
  if (!writing_) flush_.Schedule();
}

void Connection::Flush() {
  if (!closed_ && !writing_ && !waiting_ && !out_.empty()) Write();
}

bool Connection::MustReplicate(const Request& request) const {
  const Script* script = request.command.script();
  return context_.options.wait_replicas > 0 && script != nullptr && script->replicated();
}

void Connection::AddWait() {
  const Options& options = context_.options;
  Command wait("WAIT");
  wait.Add(int64_t{options.wait_replicas});
  wait.Add(std::min(too_few_ ? kWaitAgainMax : kWaitMax, options.command_timeout / 2).count());
  wait.Encode(out_, false);
  under_way_.push_back({.request = nullptr, .at = {}, .wait = true});
  ++unsent_;
  waiting_ = true;
}

void Connection::Waited(const Reply& reply) {
  const int wanted = context_.options.wait_replicas;
  const int64_t have = reply.root().integer();
  waiting_ = false;
  too_few_ = have < wanted;
  // Taken one by one: the owner may close the connection, which returns the others.
  while (!closed_ && !held_.empty()) {
    Held held = std::move(held_.front());
    held_.pop_front();
    if (held.request == nullptr) continue;
    if (have < wanted) {
      held.reply = ErrorReply(fmt::format("{} Redis at {} has done it, but {} of {} replicas have received it in time",
                                          kUnreplicated, plan_.endpoint.Text(), have, wanted));
    }
    owner_->Replied(*this, std::move(held.request), std::move(held.reply));
  }
  Flush();
}

void Connection::Write() {
  if (std::exchange(wait_wanted_, false)) AddWait();
  const TimePoint now = Now();
  for (size_t i = under_way_.size() - unsent_; i < under_way_.size(); ++i) under_way_[i].at = now;
  unsent_ = 0;
  if (!under_way_.empty()) deadline_.SetEarlier(now + kSilence);
  sending_.clear();
  if (sending_.capacity() > kKeptBytes) sending_ = {};
  std::swap(out_, sending_);
  writing_ = true;
  stream_.Write(boost::asio::buffer(sending_), [self = shared_from_this()](const error_code& error, size_t) {
    self->writing_ = false;
    if (self->closed_) return;
    if (error) return self->FailWith(error.message());
    self->Flush();
  });
}

void Connection::Read() {
  stream_.Read(boost::asio::buffer(buffer_),
               [self = shared_from_this()](const error_code& error, size_t count) { self->Received(error, count); });
}

void Connection::Received(const error_code& error, size_t count) {
  if (closed_) return;
  if (error) return FailWith(error.message());
  const TimePoint now = Now();
  heard_at_ = now;
  builder_.Feed({buffer_.data(), count});
  // The callback may close the connection.
  while (!closed_) {
    auto reply = builder_.Next();
    if (!reply) return FailWith(fmt::format("it does not speak Redis: {}", reply.error().message));
    if (!*reply) break;
    Take(std::move(**reply), now);
  }
  if (closed_) return;
  Took({}, now);
  Read();
}

void Connection::Take(Reply reply, TimePoint now) {
  if (!greeting_.empty()) return Greeted(reply);
  if (plan_.use == Use::kMessages) return owner_->Pushed(*this, reply);
  if (under_way_.size() == unsent_) {
    return FailWith(fmt::format("it said what nobody asked for: {}", reply.root().text()));
  }
  Sent sent = std::move(under_way_.front());
  under_way_.pop_front();
  Took(sent.at, now);
  if (sent.wait) return Waited(reply);
  if (sent.request == nullptr) return;
  // The server lost its scripts: all of them, not only this one.
  if (reply.kind() == Kind::kError && reply.root().text().starts_with("NOSCRIPT")) known_.clear();
  if (const Script* script = sent.request->command.script()) context_.figures.RecordScript(*script, now - sent.at);
  if (MustReplicate(*sent.request) && reply.kind() != Kind::kError) {
    held_.push_back({std::move(sent.request), std::move(reply)});
    return;
  }
  owner_->Replied(*this, std::move(sent.request), std::move(reply));
}

void Connection::Took(TimePoint sent_at, TimePoint now) {
  const auto took = now - sent_at;
  if (same_round_trips_ > 0 && took != last_round_trip_) {
    context_.figures.round_trips->Record(last_round_trip_, std::exchange(same_round_trips_, 0));
  }
  if (sent_at == TimePoint()) return;
  last_round_trip_ = took;
  ++same_round_trips_;
}

void Connection::CheckDeadlines() {
  const Options& options = context_.options;
  if (!ready_) {
    return FailWith(fmt::format("no connection within {} ms", options.connect_timeout.count()));
  }
  if (under_way_.empty()) return;
  const TimePoint now = Now();
  if (unsent_ < under_way_.size() && under_way_.front().at + options.command_timeout <= now) {
    return FailWith(fmt::format("no answer within {} ms", options.command_timeout.count()));
  }
  const bool silent = unsent_ < under_way_.size() && std::max(under_way_.front().at, heard_at_) + kSilence <= now;
  Requests overdue;
  for (Sent& sent : under_way_) {
    if (sent.request != nullptr && sent.request->deadline <= now) overdue.push_back(std::move(sent.request));
  }
  for (Held& held : held_) {
    if (held.request != nullptr && held.request->deadline <= now) overdue.push_back(std::move(held.request));
  }
  WatchDeadlines(now);
  if (silent) owner_->Silent(*this);
  if (!overdue.empty()) owner_->Overdue(*this, std::move(overdue));
}

void Connection::WatchDeadlines(TimePoint now) {
  TimePoint next = TimePoint::max();
  if (unsent_ < under_way_.size()) {
    next = std::min(now + kSilence, under_way_.front().at + context_.options.command_timeout);
  }
  for (const Sent& sent : under_way_) {
    if (sent.request != nullptr) next = std::min(next, sent.request->deadline);
  }
  for (const Held& held : held_) {
    if (held.request != nullptr) next = std::min(next, held.request->deadline);
  }
  deadline_.Set(next);
}

void Connection::FailWith(std::string_view why) {
  Fail(Error{Code::kUnavailable, fmt::format("Redis at {}: {}", plan_.endpoint.Text(), why), {}});
}

void Connection::Fail(const Error& why) {
  if (closed_) return;
  Requests sent;
  Requests unsent;
  Close(sent, unsent);
  owner_->Lost(*this, why, std::move(sent), std::move(unsent));
}

Requests Connection::TakeUnsent() {
  Requests unsent;
  const auto first = under_way_.end() - static_cast<ptrdiff_t>(unsent_);
  for (auto it = first; it != under_way_.end(); ++it) {
    if (it->request != nullptr) unsent.push_back(std::move(it->request));
  }
  under_way_.erase(first, under_way_.end());
  unsent_ = 0;
  wait_wanted_ = false;
  out_.clear();
  // A command with the source of a script may be among them.
  known_.clear();
  return unsent;
}

void Connection::Close(Requests& sent, Requests& unsent) {
  if (closed_) return;
  closed_ = true;
  stream_.Close();
  deadline_.Cancel();
  for (RequestPtr& request : TakeUnsent()) unsent.push_back(std::move(request));
  for (Held& held : held_) {
    if (held.request != nullptr) sent.push_back(std::move(held.request));
  }
  for (Sent& one : under_way_) {
    if (one.request != nullptr) sent.push_back(std::move(one.request));
  }
  held_.clear();
  under_way_.clear();
}

}  // namespace tocsin::redis
