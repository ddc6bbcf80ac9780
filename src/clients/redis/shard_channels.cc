#include "clients/redis/shard_channels.h"

#include "clients/redis/slot_map.h"

namespace tocsin::redis {

bool ShardChannels::Add(std::string channel, Client::Message message) {
  Remove(channel);
  const auto at = channels_.emplace(std::move(channel), Channel{std::move(message), {}}).first;
  PlaceOne(at->first, at->second);
  return at->second.at.has_value();
}

bool ShardChannels::Remove(std::string_view channel) {
  const auto at = channels_.find(channel);
  if (at == channels_.end()) return false;
  Lose(at->first, at->second);
  channels_.erase(at);
  return true;
}

void ShardChannels::Place() {
  for (auto& [name, channel] : channels_) PlaceOne(name, channel);
  std::erase_if(links_, [](const auto& entry) { return entry.second->empty(); });
}

void ShardChannels::PlaceOne(const std::string& name, Channel& channel) {
  const std::optional<Endpoint> server = hooks_.where(HashSlot(name));
  if (!server || channel.at == server) return;
  Lose(name, channel);
  channel.at = server;
  LinkAt(*server).Add(name, [this](std::string_view said_on, std::string_view message) {
    const auto found = channels_.find(said_on);
    if (found != channels_.end()) found->second.message(said_on, message);
  });
}

void ShardChannels::Lose(const std::string& name, Channel& channel) {
  if (channel.at) links_.at(*channel.at)->Remove(name);
  channel.at.reset();
}

Subscription& ShardChannels::LinkAt(const Endpoint& endpoint) {
  auto& link = links_[endpoint];
  if (link == nullptr) {
    link = std::make_unique<Subscription>(
        context_, Login{context_.options.username, context_.options.password},
        Subscription::Hooks{.where = [endpoint](Link& one) { one.ConnectTo(endpoint); },
                            .back = [this] { hooks_.back(); },
                            .moved = [this, endpoint](std::string_view said) { Moved(endpoint, said); }});
  }
  return *link;
}

void ShardChannels::Moved(const Endpoint& from, std::string_view said) {
  // The name of a channel, or MOVED with a hash slot.
  const auto redirect = ParseRedirect(said, from);
  for (auto& [name, channel] : channels_) {
    if (channel.at == from && (redirect ? HashSlot(name) == redirect->hash_slot : name == said)) Lose(name, channel);
  }
  hooks_.moved();
}

bool ShardChannels::lacking() const {
  return std::ranges::any_of(channels_, [](const auto& entry) { return !entry.second.at; });
}

void ShardChannels::Close(Requests& sent, Requests& unsent) {
  for (auto& [endpoint, link] : links_) link->Close(sent, unsent);
}

}  // namespace tocsin::redis
