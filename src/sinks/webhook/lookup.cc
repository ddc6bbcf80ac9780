#include "sinks/webhook/lookup.h"

#include <algorithm>
#include <cstring>
#include <system_error>

#include <boost/asio/ip/tcp.hpp>
#include <netdb.h>
#include <pthread.h>

namespace tocsin::webhook {
namespace {

// Look-ups that count, by the last one of the name; server/program.cc counts their open files.
constexpr size_t kLostMax = 8;
constexpr size_t kOthersMax = 56;
constexpr size_t kFoundMax = 48;     // of the others: of names that were found,
constexpr size_t kUnprovenMax = 48;  // and of those that never were,
constexpr size_t kSlowMax = 8;       // which may have failed
// Look-ups that have run out of patience and do not count any more. Each has a thread, which was replaced.
constexpr size_t kStuckMax = NameLookup::kThreadsMax - kOthersMax - kLostMax;
constexpr size_t kNamesMin = 1'000;  // fewer are not worth forgetting
constexpr auto kUnusedMax = std::chrono::minutes(10);
constexpr Millis kStopWithin{250};

}  // namespace

NameLookup::NameLookup(Find find, Times times, Start start)
    : times_(times), start_(std::move(start)), state_(std::make_shared<State>(std::move(find), times)) {}

NameLookup::~NameLookup() {
  std::map<std::string, Name> names;
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->wake.notify_all();
  // Threads that look nothing up end at once. Those that hang end when they may, and touch only the state.
  state_->ended.wait_for(lock, kStopWithin, [this] { return state_->threads == 0; });
  names = std::exchange(state_->names, {});  // with the askers, whose loops may end after this
}

void NameLookup::Tell(Asker asker, Found found) {
  asker.loop->Post([found = std::move(found), done = std::move(asker.done)]() mutable { done(*found); });
}

void NameLookup::Ask(const std::string& name, Loop& loop, Done done) {
  const std::lock_guard lock(state_->mutex);
  const TimePoint now = std::chrono::steady_clock::now();
  state_->ForgetOld(now);
  Name& entry = state_->names[name];
  entry.asked_at = now;
  Asker asker{&loop, std::move(done)};
  const bool rests = entry.error != nullptr && now < entry.rest_until;
  if (entry.addresses != nullptr && now < entry.found_at + times_.usable) {
    Tell(std::move(asker), entry.addresses);
    if (now >= entry.found_at + times_.fresh && !rests) Begin(name, entry);
    return;
  }
  if (rests) return Tell(std::move(asker), entry.error);
  entry.askers.push_back(std::move(asker));
  Begin(name, entry);
}

void NameLookup::Doubt(const std::string& name) {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->names.find(name);
  if (at == state_->names.end()) return;
  if (std::chrono::steady_clock::now() >= at->second.found_at + times_.rest_min) at->second.addresses = nullptr;
}

void NameLookup::Begin(const std::string& name, Name& entry) {
  if (std::exchange(entry.busy, true)) return;
  auto& queue = state_->waiting[static_cast<size_t>(entry.rank)];
  queue.push_back(name);
  size_t waiting = 0;
  for (const auto& each : state_->waiting) waiting += each.size();
  if (state_->idle < waiting && state_->threads < kThreadsMax) {
    const Status added = AddThread();
    if (state_->threads == 0) {
      queue.pop_back();
      entry.busy = false;
      const auto error = std::make_shared<const Result<Addresses>>(std::unexpected(added.error()));
      for (Asker& asker : std::exchange(entry.askers, {})) Tell(std::move(asker), error);
      return;
    }
  }
  state_->wake.notify_one();
}

Status NameLookup::AddThread() {
  try {
    start_([state = state_] { state->Work(); });
  } catch (const std::system_error& error) {
    return Fail(Code::kUnavailable, "no thread for looking names up: {}", error.what());
  }
  ++state_->threads;
  return {};
}

void NameLookup::OnThread(std::function<void()> task) { std::thread(std::move(task)).detach(); }

void NameLookup::State::ForgetOld(TimePoint now) {
  if (names.size() < std::max(forget_at, kNamesMin)) return;
  std::erase_if(names, [now](const auto& one) { return !one.second.busy && one.second.asked_at + kUnusedMax < now; });
  forget_at = 2 * names.size();
}

void NameLookup::State::FreeStuck(TimePoint now) {
  while (!running.empty() && running.front()->since + times.patience <= now && stuck < kStuckMax) {
    const std::shared_ptr<Running> one = running.front();
    running.pop_front();
    one->counts = false;
    --active[one->rank];
    ++stuck;
  }
}

size_t NameLookup::State::NextRank() {
  FreeStuck(std::chrono::steady_clock::now());
  constexpr auto kFound = static_cast<size_t>(Rank::kFound);
  constexpr auto kLost = static_cast<size_t>(Rank::kLost);
  constexpr auto kNew = static_cast<size_t>(Rank::kNew);
  constexpr auto kSlow = static_cast<size_t>(Rank::kSlow);
  const size_t unproven = active[kNew] + active[kSlow];
  const bool others = active[kFound] + unproven < kOthersMax;
  const std::array<bool, kRanks> room = {
      others && active[kFound] < kFoundMax,
      active[kLost] < kLostMax,
      others && unproven < kUnprovenMax,
      others && unproven < kUnprovenMax && active[kSlow] < kSlowMax,
  };
  for (size_t rank = 0; rank < kRanks; ++rank) {
    if (room[rank] && !waiting[rank].empty()) return rank;
  }
  return kRanks;
}

std::string NameLookup::State::TakeWaiting(size_t rank) {
  auto& queue = waiting[rank];
  // Of names that nothing is known of, the newest and the oldest in turn: many that hang and came first, as after a
  // start, must not all go before one that comes later.
  const bool newest = rank == static_cast<size_t>(Rank::kNew) && std::exchange(newest_next, !newest_next);
  std::string name = std::move(newest ? queue.back() : queue.front());
  newest ? queue.pop_back() : queue.pop_front();
  return name;
}

void NameLookup::State::AwaitTurn(std::unique_lock<std::mutex>& lock) {
  ++idle;
  while (!stopping && NextRank() == kRanks) {
    const bool some_wait = std::ranges::any_of(waiting, [](const auto& queue) { return !queue.empty(); });
    if (some_wait && !running.empty() && stuck < kStuckMax) {
      wake.wait_until(lock, running.front()->since + times.patience);
    } else {
      wake.wait(lock);
    }
  }
  --idle;
}

void NameLookup::State::Work() {
  pthread_setname_np(pthread_self(), "webhook-names");
  std::unique_lock lock(mutex);
  while (true) {
    AwaitTurn(lock);
    if (stopping) break;
    const size_t rank = NextRank();
    const std::string name = TakeWaiting(rank);
    const auto one = std::make_shared<Running>(rank, std::chrono::steady_clock::now());
    ++active[rank];
    // Those that failed before have few threads, also if they hang.
    const bool failed = rank == static_cast<size_t>(Rank::kLost) || rank == static_cast<size_t>(Rank::kSlow);
    if (!failed) running.push_back(one);
    lock.unlock();
    const auto found = std::make_shared<const Result<Addresses>>(find(name));
    const TimePoint now = std::chrono::steady_clock::now();
    lock.lock();
    one->counts ? --active[rank] : --stuck;
    std::erase(running, one);
    wake.notify_one();
    if (stopping) break;
    Name& entry = names.at(name);  // it is busy, so it was not forgotten
    entry.Keep(found, now - one->since > times.deadline, times, now);
    for (Asker& asker : std::exchange(entry.askers, {})) Tell(std::move(asker), found);
  }
  --threads;
  ended.notify_all();
}

void NameLookup::Name::Keep(Found found, bool late, const Times& times, TimePoint now) {
  busy = false;
  if (*found) found_at = now;
  rank = Rank::kFound;
  if (late || !*found) rank = found_at == TimePoint{} ? Rank::kSlow : Rank::kLost;
  if (*found) {
    addresses = std::move(found);
    error = nullptr;
    rest = Millis(0);
    return;
  }
  error = std::move(found);
  rest = std::clamp(rest * 2, times.rest_min, times.rest_max);
  rest_until = now + rest;
}

Result<Addresses> NameLookup::FindBySystem(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(name.c_str(), nullptr, &hints, &list);
  if (error != 0) {
    return Fail(Code::kUnavailable, "the name {} cannot be looked up: {}", name, gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  Addresses addresses;
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    boost::asio::ip::tcp::endpoint endpoint;  // its memory is a sockaddr of either family
    std::memcpy(endpoint.data(), info->ai_addr, std::min<size_t>(info->ai_addrlen, endpoint.capacity()));
    addresses.push_back(endpoint.address());
  }
  return addresses;
}

}  // namespace tocsin::webhook
