#include "load/consumer.h"

namespace tocsin::bench {
namespace {

constexpr size_t kMostTokens = 1000;  // of one acknowledgement
constexpr size_t kMostHeld = 8 * kMostTokens;
constexpr size_t kSettlesUnderWay = 4;

}  // namespace

Consumer::Consumer(Poller& poller, const Endpoint& endpoint, const std::string& ca, Protocol& protocol, Ledger& ledger,
                   const Settings& settings)
    : ledger_(ledger), settings_(settings), lane_(poller, endpoint, ca, protocol, *this) {
  if (!settings_.single && !protocol.tuning().settles_in_place)
    settling_.emplace(poller, endpoint, ca, protocol, *this);
}

void Consumer::Delivered(std::string_view token, std::string_view payload) {
  ledger_.Delivered(payload, lane_.received_ns());
  tokens_.emplace_back(token);
}

void Consumer::Answered(Lane&, const Request& request) {
  if (request.call == Call::kReserve) return Reserved(request.done);
  ledger_.acked += request.done;
  ledger_.stale += request.jobs - request.done;
  if (settings_.single) return Reserve();
  if (in_place()) return;
  Settle();
  if (!reserving_ && asks_at_ == Instant::max()) Reserve();
}

void Consumer::Reserved(uint32_t jobs) {
  reserving_ = false;
  Settle();
  if (settings_.single && jobs > 0) return;  // one request at a time: Answered goes on
  if (settings_.poll > Nanos(0) && jobs < settings_.reserve) {
    asks_at_ = SteadyClock::now() + settings_.poll;
    return;
  }
  Reserve();
}

void Consumer::AskAgain() {
  asks_at_ = Instant::max();
  Reserve();
}

void Consumer::Reserve() {
  if (tokens_.size() >= kMostHeld) return;  // an acknowledgement that is answered goes on
  reserving_ = true;
  lane_.Reserve(settings_.reserve);
  lane_.Flush();
}

void Consumer::Settle() {
  Lane& lane = settling_ ? *settling_ : lane_;
  while (!tokens_.empty() && (in_place() || lane.under_way() < kSettlesUnderWay)) {
    const size_t count = std::min(tokens_.size(), kMostTokens);
    lane.Ack(tokens_.data(), count);
    tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<ptrdiff_t>(count));
  }
  lane.Flush();
}

}  // namespace tocsin::bench
