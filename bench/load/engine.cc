#include "load/engine.h"

#include <cstdio>

namespace tocsin::bench {
namespace {

constexpr size_t kSingleConnections = 50;
constexpr auto kProgressEvery = std::chrono::seconds(5);
constexpr auto kAskEvery = std::chrono::milliseconds(20);

size_t Or(size_t value, size_t otherwise) { return value != 0 ? value : otherwise; }

Consumer::Settings SettingsOf(const Options& options, const Tuning& tuning, size_t consumers) {
  // Together they poll about once a millisecond: more often takes the server's time from its other work.
  const Nanos poll = std::chrono::milliseconds(std::min<size_t>(consumers, 10));
  return {.reserve = options.single() ? 1 : Or(options.reserve, tuning.reserve),
          .single = options.single(),
          .poll = tuning.polls ? poll : Nanos(0)};
}

}  // namespace

size_t BatchOf(const Options& options, const Tuning& tuning) {
  return options.single() ? 1 : Or(options.batch, tuning.batch);
}

size_t ConnectionsOf(const Options& options, const Tuning& tuning) {
  return Or(options.connections, options.single() ? kSingleConnections : tuning.connections);
}

Engine::Engine(const Options& options, Protocol& protocol, const std::vector<Endpoint>& endpoints, size_t jobs,
               size_t window)
    : ledger(jobs),
      batch(BatchOf(options, protocol.tuning())),
      deadline_(began_ + std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(options.time_limit))),
      window_(options.single() ? 1 : Or(options.window, window)),
      protocol_(protocol),
      first_(endpoints.front()),
      jobs_(jobs) {
  const Tuning& tuning = protocol.tuning();
  for (const Endpoint& endpoint : endpoints) protocol.Prepare(endpoint);
  for (size_t i = 0; i < ConnectionsOf(options, tuning); ++i) {
    producers_.push_back(std::make_unique<Lane>(poller_, endpoints[i % endpoints.size()], options.ca, protocol, *this));
  }
  if (tuning.pushes) return;
  const size_t consumers = Or(options.consumers, options.single() ? kSingleConnections : tuning.consumers);
  const Consumer::Settings settings = SettingsOf(options, tuning, consumers);
  for (size_t i = 0; i < consumers; ++i) {
    const Endpoint& endpoint = endpoints[i % endpoints.size()];
    consumers_.push_back(std::make_unique<Consumer>(poller_, endpoint, options.ca, protocol, ledger, settings));
  }
}

bool Engine::Submit(const Jobs& jobs, Instant since) {
  if (under_way_ == producers_.size() * window_) return false;
  while (producers_[next_]->under_way() >= window_) next_ = (next_ + 1) % producers_.size();
  Lane& lane = *producers_[next_];
  next_ = (next_ + 1) % producers_.size();
  ++under_way_;
  ledger.sent += jobs.count;
  lane.Submit(jobs, since);
  lane.Flush();
  return true;
}

void Engine::StartConsumers() {
  if (protocol_.tuning().pushes) asks_at_ = SteadyClock::now();
  for (const auto& consumer : consumers_) consumer->Start();
}

void Engine::Turn(Instant until) {
  Instant now = SteadyClock::now();
  for (const auto& consumer : consumers_) {
    if (consumer->asks_at() <= now) consumer->AskAgain();
    until = std::min(until, consumer->asks_at());
  }
  if (asks_at_ <= now) asks_at_ = AskConfirmed(now);
  poller_.Turn(std::min({until, deadline_, asks_at_}));
  now = SteadyClock::now();
  if (now >= deadline_) {
    Die("not done at the time limit: {} jobs sent, {} stored, {} delivered, {} acknowledged", ledger.sent,
        ledger.submitted, ledger.delivered, ledger.acked);
  }
  ShowProgress(now);
}

/// When to ask again.
Instant Engine::AskConfirmed(Instant now) {
  if (ledger.submitted == jobs_) ledger.acked = ledger.delivered = protocol_.Confirmed(first_);
  return now + kAskEvery;
}

void Engine::Answered(Lane&, const Request& request) {
  if (request.done != request.jobs) Die("{} of {} jobs of a submit are stored", request.done, request.jobs);
  --under_way_;
  ledger.submitted += request.jobs;
  ledger.latency.Add(SteadyClock::now() - request.since);
}

void Engine::ShowProgress(Instant now) {
  if (now - shown_ < kProgressEvery) return;
  shown_ = now;
  std::fprintf(stderr, "%5.0f s: %zu stored, %zu delivered, %zu acknowledged\n", Seconds(now - began_),
               ledger.submitted, ledger.delivered, ledger.acked);
}

}  // namespace tocsin::bench
