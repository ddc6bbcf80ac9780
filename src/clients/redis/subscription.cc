#include "clients/redis/subscription.h"

#include <algorithm>

namespace tocsin::redis {

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
    return Drop(Error{Code::kUnavailable,
                      fmt::format("Redis at {} refuses the subscription: {}", endpoint().Text(), root.text()),
                      {}});
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
    return Drop(Error{Code::kUnavailable,
                      fmt::format("Redis at {}: no sign of life for {} ms", endpoint().Text(), beat.count()),
                      {}});
  }
  connection().Tell(Command("PING"));
  beat_.Set(std::chrono::steady_clock::now() + beat);
}

}  // namespace tocsin::redis
