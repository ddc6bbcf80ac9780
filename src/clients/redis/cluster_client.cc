#include "clients/redis/cluster_client.h"

#include "base/log.h"
#include "clients/redis/verdict.h"

namespace tocsin::redis {
namespace {

constexpr int kRedirectsMax = 5;  // without a pause

using Each = std::vector<std::pair<Endpoint, Reply>>;

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
    : BaseClient(std::move(given)), refresh_(context().io, [this] { Refresh(); }) {}

ClusterClient::~ClusterClient() { Close(); }

void ClusterClient::CloseLanes(Requests& sent, Requests& unsent) {
  inquiry_ = nullptr;
  refresh_.Cancel();
  for (auto& [endpoint, lane] : lanes_) lane->Close(sent, unsent);
}

void ClusterClient::Route(RequestPtr request) {
  request->asking = false;
  if (Lane* lane = LaneFor(*request)) return lane->Send(std::move(request));
  WantRefresh();
  const std::string why =
      trouble_.empty() ? fmt::format("hash slot {} is served by no node", request->command.hash_slot()) : trouble_;
  Later(std::move(request), why);
}

Lane* ClusterClient::LaneFor(const Request& request) {
  if (request.pinned) return &LaneAt(*request.pinned);
  if (request.command.hash_slot() >= 0) {
    const auto node = map_.OwnerOf(request.command.hash_slot());
    return node ? by_node_[*node] : nullptr;
  }
  Lane* any = nullptr;
  for (Lane* lane : by_node_) {
    if (lane != nullptr && lane->up()) return lane;
    if (any == nullptr) any = lane;
  }
  return any;
}

Lane& ClusterClient::LaneAt(const Endpoint& endpoint) {
  auto& lane = lanes_[endpoint];
  if (lane == nullptr) {
    lane = std::make_unique<Lane>(context(), false, static_cast<Lane::Owner&>(*this));
    lane->Open();
  }
  return *lane;
}

void ClusterClient::Where(Lane& lane) {
  for (const auto& [endpoint, one] : lanes_) {
    if (one.get() == &lane) return lane.ConnectTo(endpoint);
  }
}

void ClusterClient::WhereToListen(Link& listener) {
  auto places = Connected();
  if (places.empty()) places = Known();
  listener.ConnectTo(places[listened_++ % places.size()]);
}

std::vector<Endpoint> ClusterClient::Connected() const {
  std::vector<Endpoint> connected;
  for (const auto& [endpoint, lane] : lanes_) {
    if (lane->up()) connected.push_back(endpoint);
  }
  return connected;
}

std::vector<Endpoint> ClusterClient::Known() const {
  std::vector<Endpoint> known = Connected();
  if (!known.empty()) std::ranges::rotate(known, known.begin() + static_cast<ptrdiff_t>(asked_ % known.size()));
  const auto add = [&](const Endpoint& endpoint) {
    if (std::ranges::find(known, endpoint) == known.end()) known.push_back(endpoint);
  };
  for (const SlotMap::Node& node : map_.nodes()) add(node.endpoint);
  for (const Endpoint& endpoint : context().options.endpoints) add(endpoint);
  for (const Endpoint& endpoint : doubted_) {
    if (std::erase(known, endpoint) > 0) known.push_back(endpoint);
  }
  return known;
}

void ClusterClient::LaneUp(Lane& /*lane*/) { NotifyUp(); }

void ClusterClient::LaneDown(Lane& /*lane*/) {
  gap_ = kRefreshGap;
  WantRefresh();
}

void ClusterClient::Postponed(Lane& lane, std::string_view why) {
  // TRYAGAIN is the way of a slot that is moving.
  if (!why.starts_with("TRYAGAIN")) Doubt(lane);
}

void ClusterClient::Doubt(Lane& lane) {
  doubted_.insert(lane.endpoint());
  WantRefresh();
}

void ClusterClient::Redirected(Lane& lane, RequestPtr request, Reply reply) {
  const std::string_view text = reply.root().text();
  const auto redirect = ParseRedirect(text, lane.endpoint());
  if (!redirect) return Finish(std::move(request), std::move(reply));
  const bool moved = Judge(reply) == Verdict::kMoved;
  (moved ? context().figures.moved : context().figures.asked)->Add();
  if (moved) MoveSlot(redirect->hash_slot, redirect->to);
  if (++request->redirects > kRedirectsMax) return Later(std::move(request), text);
  request->asking = !moved;
  LaneAt(redirect->to).Send(std::move(request));
}

void ClusterClient::MoveSlot(int hash_slot, const Endpoint& to) {
  // Many commands of one slot may be under way when it moves: the first one tells it.
  const auto known = map_.OwnerOf(hash_slot);
  if (known && map_.nodes()[*known].endpoint == to) return;
  const size_t node = map_.Move(hash_slot, to);
  by_node_.resize(map_.nodes().size());
  by_node_[node] = &LaneAt(to);
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
  const auto check = [this](const Endpoint& node, const Reply& reply) -> Status {
    auto map = SlotMap::Parse(reply, node);
    if (!map) return std::unexpected(std::move(map).error());
    if (map->empty()) return Fail(Code::kUnavailable, "Redis at {}: it knows no hash slots", node.Text());
    fresh_ = std::move(*map);
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
    if (trouble_.empty()) LogWarn("no node of the Redis Cluster says who serves what: {}", status.error().message);
    trouble_ = status.error().message;
  }
  if (!again_ && status && !SomeMasterIsDown()) {
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
    by_node_.clear();
    for (const SlotMap::Node& node : map_.nodes()) by_node_.push_back(node.master ? &LaneAt(node.endpoint) : nullptr);
    NotifyUp();
    // A node that left the Cluster hears nothing of it any more.
    if (std::ranges::find(map_.nodes(), subscription().endpoint(), &SlotMap::Node::endpoint) == map_.nodes().end()) {
      subscription().Renew();
    }
  }
  // What waits for a node that cannot be reached may be another one's now.
  Requests waiting;
  for (auto& [endpoint, lane] : lanes_) {
    if (lane->up()) continue;
    for (RequestPtr& request : lane->TakeWaiting()) waiting.push_back(std::move(request));
  }
  for (RequestPtr& request : waiting) Route(std::move(request));
  if (changed) RetryNow();
  DropUnused();
}

void ClusterClient::DropUnused() {
  std::erase_if(lanes_, [&](auto& entry) {
    Lane& lane = *entry.second;
    const bool served = std::ranges::find(by_node_, &lane) != by_node_.end();
    // One that is not in the map may be where a slot is moving to: it stays as long as it has something to do.
    return !served && !lane.TakeUsed() && lane.idle();
  });
}

bool ClusterClient::SomeMasterIsDown() const {
  return std::ranges::any_of(by_node_, [](const Lane* lane) { return lane != nullptr && !lane->up(); });
}

void ClusterClient::CallEach(const Command& command, std::move_only_function<void(Result<Each>)> answer) {
  auto gathering = std::make_shared<Gathering>(Gathering{command, std::move(answer)});
  // Any answer at all means that there is a map.
  Call(Command("PING"), [this, gathering](Result<Reply> reply) {
    if (!reply) return gathering->answer(std::unexpected(std::move(reply).error()));
    AskAll(gathering);
  });
}

void ClusterClient::AskAll(const std::shared_ptr<Gathering>& gathering) {
  Requests requests;
  for (const SlotMap::Node& node : map_.nodes()) {
    if (!node.master) continue;
    requests.push_back(MakeRequest(gathering->command, [gathering, endpoint = node.endpoint](Result<Reply> reply) {
      gathering->Add(endpoint, std::move(reply));
    }));
    requests.back()->pinned = node.endpoint;
  }
  if (requests.empty()) return gathering->answer(Fail(Code::kUnavailable, "not sent: no master is known"));
  gathering->awaited = requests.size();
  for (RequestPtr& request : requests) Route(std::move(request));
}

std::vector<ServerHealth> ClusterClient::Health() const {
  std::vector<ServerHealth> all;
  for (size_t i = 0; i < map_.nodes().size(); ++i) {
    const SlotMap::Node& node = map_.nodes()[i];
    ServerHealth health{.state = "not in use"};
    if (by_node_[i] != nullptr) health = by_node_[i]->Health();
    health.endpoint = node.endpoint;
    health.role = node.master ? "master" : "replica";
    health.hash_slots = node.hash_slots;
    all.push_back(std::move(health));
  }
  if (!all.empty()) return all;
  for (const Endpoint& endpoint : context().options.endpoints) {
    all.push_back({.endpoint = endpoint, .state = trouble_.empty() ? "connecting" : trouble_});
  }
  return all;
}

}  // namespace tocsin::redis
