#include "clients/redis/slot_map.h"

#include <charconv>

namespace tocsin::redis {
namespace {

constexpr size_t kServersMax = 10'000;  // Redis itself advises against more than 1,000

Result<Endpoint> EndpointOf(ReplyView server, const Endpoint& asked) {
  const int64_t port = server.size() < 2 ? 0 : server[1].integer();
  if (port <= 0 || port > UINT16_MAX) return Fail(Code::kCorrupt, "CLUSTER SLOTS: a server without a port");
  const std::string_view host = server[0].text();
  return Endpoint{host.empty() || host == "?" ? asked.host : std::string(host), static_cast<uint16_t>(port)};
}

template <class T>
bool ParseNumber(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<SlotMap> SlotMap::Parse(const Reply& reply, const Endpoint& asked) {
  const ReplyView root = reply.root();
  if (root.error()) return Fail(Code::kUnavailable, "Redis at {}: CLUSTER SLOTS: {}", asked.Text(), root.text());
  if (root.kind() != Kind::kArray) return Fail(Code::kCorrupt, "CLUSTER SLOTS: not an array");
  SlotMap map;
  for (size_t i = 0; i < root.size(); ++i) TOCSIN_TRY(map.AddRange(root[i], asked));

  // Sorted, so that equal maps from different servers compare equal.
  std::vector<size_t> order(map.servers_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return map.servers_[i].endpoint; });
  std::vector<Server> servers;
  std::vector<uint16_t> place(order.size());
  for (const size_t i : order) {
    place[i] = static_cast<uint16_t>(servers.size());
    servers.push_back(std::move(map.servers_[i]));
  }
  map.servers_ = std::move(servers);
  for (uint16_t& owner : map.owner_) owner = owner == kNobody ? kNobody : place[owner];
  return map;
}

Status SlotMap::AddRange(ReplyView range, const Endpoint& asked) {
  const int64_t first = range.size() < 3 ? -1 : range[0].integer();
  const int64_t last = range.size() < 3 ? -1 : range[1].integer();
  if (first < 0 || last < first || last >= kHashSlots)
    return Fail(Code::kCorrupt, "CLUSTER SLOTS: a range that is none");
  for (size_t i = 2; i < range.size(); ++i) {
    TOCSIN_ASSIGN(const auto endpoint, EndpointOf(range[i], asked));
    const size_t index = IndexOf(endpoint);
    if (servers_.size() > kServersMax) return Fail(Code::kCorrupt, "CLUSTER SLOTS: more than {} servers", kServersMax);
    if (i > 2) continue;
    for (int64_t slot = first; slot <= last; ++slot) Give(static_cast<size_t>(slot), index);
  }
  return {};
}

size_t SlotMap::IndexOf(const Endpoint& endpoint) {
  const auto index = static_cast<size_t>(std::ranges::find(servers_, endpoint, &Server::endpoint) - servers_.begin());
  if (index == servers_.size()) servers_.push_back({endpoint});
  return index;
}

std::optional<size_t> SlotMap::OwnerOf(int hash_slot) const {
  const uint16_t owner = owner_[static_cast<size_t>(hash_slot)];
  return owner == kNobody ? std::nullopt : std::optional<size_t>(owner);
}

size_t SlotMap::Move(int hash_slot, const Endpoint& to) {
  const size_t index = IndexOf(to);
  Give(static_cast<size_t>(hash_slot), index);
  return index;
}

void SlotMap::Give(size_t hash_slot, size_t index) {
  uint16_t& owner = owner_[hash_slot];
  if (owner != kNobody) --servers_[owner].hash_slots;
  owner = static_cast<uint16_t>(index);
  ++servers_[index].hash_slots;
  servers_[index].master = true;
}

std::optional<Redirect> ParseRedirect(std::string_view text, const Endpoint& from) {
  const size_t slot = text.find(' ');
  const size_t place = slot == std::string_view::npos ? slot : text.find(' ', slot + 1);
  const size_t colon = text.rfind(':');
  if (place == std::string_view::npos || colon == std::string_view::npos || colon < place) return std::nullopt;
  Redirect redirect;
  if (!ParseNumber(text.substr(slot + 1, place - slot - 1), redirect.hash_slot)) return std::nullopt;
  if (!ParseNumber(text.substr(colon + 1), redirect.to.port)) return std::nullopt;
  if (redirect.hash_slot < 0 || redirect.hash_slot >= kHashSlots || redirect.to.port == 0) return std::nullopt;
  const std::string_view host = text.substr(place + 1, colon - place - 1);
  redirect.to.host = host.empty() || host == "?" ? from.host : std::string(host);
  return redirect;
}

}  // namespace tocsin::redis
