#include "clients/redis/cluster_client.h"

#include "base/log.h"

namespace tocsin::redis {
namespace {

constexpr int kRedirectsMax = 5;  // without a pause

}  // namespace

/// A CallEach under way.
struct ClusterClient::Gathering {
  Command command;
  std::move_only_function<void(Result<Each>)> answer;
  size_t awaited = 0;
  Result<Each> result = Each();

  void Add(const Endpoint& endpoint, Result<Reply> reply) {
    if (!reply) {
      result = std::unexpected(std::move(reply).error());
    } else if (result) {
      result->emplace_back(endpoint, std::move(*reply));
    }
    if (--awaited == 0) answer(std::move(result));
  }
};

ClusterClient::ClusterClient(std::unique_ptr<Context> given)
    : BaseClient(std::move(given)),
      shard_channels_(context(), {.where = [this](int hash_slot) -> std::optional<Endpoint> {
                                    const auto server = map_.OwnerOf(hash_slot);
                                    if (!server) return std::nullopt;
                                    return map_.servers()[*server].endpoint;
                                  },
                                  .back = [this] { NotifyUp(); },
                                  .moved = [this] { WantRefresh(); }}),
      refresh_(context().io, [this] { Refresh(); }) {}

ClusterClient::~ClusterClient() { Close(); }

void ClusterClient::CloseLinks(Requests& sent, Requests& unsent) {
  inquiry_ = nullptr;
  refresh_.Cancel();
  for (auto& [endpoint, link] : links_) link->Close(sent, unsent);
  shard_channels_.Close(sent, unsent);
}

void ClusterClient::SubscribeShard(std::string channel, Message message) {
  if (closed()) return;
  const bool placed = shard_channels_.Add(std::move(channel), std::move(message));
  if (!placed && inquiry_ == nullptr) WantRefresh();
}

void ClusterClient::Route(RequestPtr request) {
  request->asking = false;
  if (CommandLink* link = LinkFor(*request)) return link->Send(std::move(request));
  WantRefresh();
  const std::string why =
      trouble_.empty() ? fmt::format("hash slot {} has no server", request->command.hash_slot()) : trouble_;
  Later(std::move(request), why);
}

CommandLink* ClusterClient::LinkFor(const Request& request) {
  if (request.pinned) return &LinkAt(*request.pinned);
  if (request.command.hash_slot() >= 0) {
    const auto server = map_.OwnerOf(request.command.hash_slot());
    return server ? by_server_[*server] : nullptr;
  }
  CommandLink* any = nullptr;
  for (CommandLink* link : by_server_) {
    if (link != nullptr && link->up()) return link;
    if (any == nullptr) any = link;
  }
  return any;
}

CommandLink& ClusterClient::LinkAt(const Endpoint& endpoint) {
  auto& link = links_[endpoint];
  if (link == nullptr) {
    link = std::make_unique<CommandLink>(context(), false, static_cast<CommandLink::Owner&>(*this));
    link->Open();
  }
  return *link;
}

void ClusterClient::Where(CommandLink& link) {
  for (const auto& [endpoint, one] : links_) {
    if (one.get() == &link) return link.ConnectTo(endpoint);
  }
}

void ClusterClient::WhereToListen(Link& listener) {
  auto places = Connected();
  if (places.empty()) places = Known();
  listener.ConnectTo(places[listened_++ % places.size()]);
}

std::vector<Endpoint> ClusterClient::Connected() const {
  std::vector<Endpoint> connected;
  for (const auto& [endpoint, link] : links_) {
    if (link->up()) connected.push_back(endpoint);
  }
  return connected;
}

std::vector<Endpoint> ClusterClient::Known() const {
  std::vector<Endpoint> known = Connected();
  if (!known.empty()) std::ranges::rotate(known, known.begin() + static_cast<ptrdiff_t>(asked_ % known.size()));
  const auto add = [&](const Endpoint& endpoint) {
    if (std::ranges::find(known, endpoint) == known.end()) known.push_back(endpoint);
  };
  for (const SlotMap::Server& server : map_.servers()) add(server.endpoint);
  for (const Endpoint& endpoint : context().options.endpoints) add(endpoint);
  for (const Endpoint& endpoint : doubted_) {
    if (std::erase(known, endpoint) > 0) known.push_back(endpoint);
  }
  return known;
}

void ClusterClient::LinkUp(CommandLink& /*link*/) { NotifyUp(); }

void ClusterClient::LinkDown(CommandLink& /*link*/) {
  gap_ = kRefreshGap;
  WantRefresh();
}

void ClusterClient::Postponed(CommandLink& link, std::string_view why) {
  // TRYAGAIN is normal while a slot moves.
  if (!why.starts_with("TRYAGAIN")) Doubt(link);
}

void ClusterClient::Doubt(CommandLink& link) {
  doubted_.insert(link.endpoint());
  WantRefresh();
}

void ClusterClient::Redirected(CommandLink& link, RequestPtr request, Reply reply) {
  const std::string_view text = reply.root().text();
  const auto redirect = ParseRedirect(text, link.endpoint());
  if (!redirect) return Finish(std::move(request), std::move(reply));
  const bool moved = Judge(reply) == Verdict::kMoved;
  (moved ? context().figures.moved : context().figures.asked)->Add();
  if (moved) MoveSlot(redirect->hash_slot, redirect->to);
  if (++request->redirects > kRedirectsMax) return Later(std::move(request), text);
  request->asking = !moved;
  LinkAt(redirect->to).Send(std::move(request));
}

void ClusterClient::MoveSlot(int hash_slot, const Endpoint& to) {
  // When a slot moves, many of its commands may be under way: only the first redirect changes the map.
  const auto known = map_.OwnerOf(hash_slot);
  if (known && map_.servers()[*known].endpoint == to) return;
  const size_t server = map_.Move(hash_slot, to);
  by_server_.resize(map_.servers().size());
  by_server_[server] = &LinkAt(to);
  NotifyUp();
  WantRefresh();
}

void ClusterClient::WantRefresh() {
  if (closed()) return;
  if (inquiry_ != nullptr) {
    again_ = true;
    return;
  }
  refresh_.SetEarlier(refreshed_at_ + gap_);
}

void ClusterClient::Refresh() {
  again_ = false;
  ++asked_;
  Command ask("CLUSTER");
  ask.Add("SLOTS");
  const auto check = [this](const Endpoint& server, const Reply& reply) -> Status {
    TOCSIN_ASSIGN(fresh_, SlotMap::Parse(reply, server));
    if (fresh_.empty()) return Fail(Code::kUnavailable, "Redis at {}: it knows no hash slots", server.Text());
    return {};
  };
  inquiry_ = std::make_unique<Inquiry>(
      context(),
      Inquiry::Question{Known(), {context().options.username, context().options.password}, std::move(ask), check},
      [this](const Status& status) { Refreshed(status); });
  doubted_.clear();
}

void ClusterClient::Refreshed(const Status& status) {
  inquiry_ = nullptr;
  refreshed_at_ = std::chrono::steady_clock::now();
  if (status) {
    trouble_.clear();
    Adopt(std::move(fresh_));
  } else {
    if (trouble_.empty())
      LogWarn("no server of the Redis Cluster says which server serves which hash slot: {}", status.error().message);
    trouble_ = status.error().message;
  }
  if (!again_ && status && !SomeMasterIsDown() && !shard_channels_.lacking()) {
    gap_ = kRefreshGap;
    return refresh_.Set(refreshed_at_ + kRefreshIdle);
  }
  std::uniform_int_distribution<int64_t> blur(gap_.count() / 2, gap_.count());
  refresh_.Set(refreshed_at_ + Millis(blur(context().random)));
  gap_ = std::min(gap_ * 2, kRefreshGapMax);
}

void ClusterClient::Adopt(SlotMap map) {
  const bool changed = map != map_;
  if (changed) {
    map_ = std::move(map);
    gap_ = kRefreshGap;
    by_server_.clear();
    for (const SlotMap::Server& server : map_.servers())
      by_server_.push_back(server.master ? &LinkAt(server.endpoint) : nullptr);
    NotifyUp();
    // A server that left the Cluster gets none of its messages.
    if (std::ranges::find(map_.servers(), subscription().endpoint(), &SlotMap::Server::endpoint) ==
        map_.servers().end()) {
      subscription().Renew();
    }
  }
  shard_channels_.Place();
  // Another server may now serve the commands that wait for one that cannot be reached.
  Requests waiting;
  for (auto& [endpoint, link] : links_) {
    if (link->up()) continue;
    for (RequestPtr& request : link->TakeWaiting()) waiting.push_back(std::move(request));
  }
  for (RequestPtr& request : waiting) Route(std::move(request));
  if (changed) RetryNow();
  DropUnused();
}

void ClusterClient::DropUnused() {
  std::erase_if(links_, [&](auto& entry) {
    CommandLink& link = *entry.second;
    const bool served = std::ranges::find(by_server_, &link) != by_server_.end();
    // A slot may be moving to a server that is not in the map: keep its link while it has work.
    return !served && !link.TakeUsed() && link.idle();
  });
}

bool ClusterClient::SomeMasterIsDown() const {
  return std::ranges::any_of(by_server_, [](const CommandLink* link) { return link != nullptr && !link->up(); });
}

void ClusterClient::CallEach(const Command& command, std::move_only_function<void(Result<Each>)> answer) {
  auto gathering = std::make_shared<Gathering>(Gathering{command, std::move(answer)});
  // Any answer means that there is a map.
  Call(Command("PING"), [this, gathering](Result<Reply> reply) {
    if (!reply) return gathering->answer(std::unexpected(std::move(reply).error()));
    AskAll(gathering);
  });
}

void ClusterClient::AskAll(const std::shared_ptr<Gathering>& gathering) {
  Requests requests;
  for (const SlotMap::Server& server : map_.servers()) {
    if (!server.master) continue;
    requests.push_back(MakeRequest(gathering->command, [gathering, endpoint = server.endpoint](Result<Reply> reply) {
      gathering->Add(endpoint, std::move(reply));
    }));
    requests.back()->pinned = server.endpoint;
  }
  if (requests.empty()) return gathering->answer(Fail(Code::kUnavailable, "not sent: no master is known"));
  gathering->awaited = requests.size();
  for (RequestPtr& request : requests) Route(std::move(request));
}

std::vector<ServerHealth> ClusterClient::Health() const {
  std::vector<ServerHealth> all;
  for (size_t i = 0; i < map_.servers().size(); ++i) {
    const SlotMap::Server& server = map_.servers()[i];
    ServerHealth health{.state = "not in use"};
    if (by_server_[i] != nullptr) health = by_server_[i]->Health();
    health.endpoint = server.endpoint;
    health.role = server.master ? "master" : "replica";
    health.hash_slots = server.hash_slots;
    all.push_back(std::move(health));
  }
  if (!all.empty()) return all;
  for (const Endpoint& endpoint : context().options.endpoints) {
    all.push_back({.endpoint = endpoint, .state = trouble_.empty() ? "connecting" : trouble_});
  }
  return all;
}

}  // namespace tocsin::redis
