#include "sinks/kafka/producer.h"

#include <algorithm>

#include <pthread.h>

#include "base/log.h"
#include "sinks/kafka/verdict.h"

namespace tocsin::kafka {
namespace {

constexpr Millis kPollMax{1'000};         // the longest wait of one round
constexpr Millis kBetweenClients{1'000};  // so that clients that fail at once do not keep the machine busy
constexpr Millis kErrorLasts{60'000};     // an older error explains nothing
constexpr Millis kDrainWait{50};

}  // namespace

Result<std::shared_ptr<Producer>> Producer::Make(Options options, Millis timeout, const Clock& clock) {
  std::shared_ptr<Producer> producer(new Producer(std::move(options), timeout, clock));
  TOCSIN_ASSIGN(producer->client_, Client::Make(producer->options_, timeout, *producer));
  producer->client_made_at_ = clock.IoNow();
  producer->thread_ = std::thread([self = producer.get()] { self->Work(); });
  return producer;
}

Producer::~Producer() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void Producer::Stop() {
  if (stopping_.exchange(true)) return;
  const auto held = Hold();
  if (client_ != nullptr) client_->Yield();
}

void Producer::WakeAt(TimePoint when, std::weak_ptr<Channel> channel) {
  {
    const std::lock_guard lock(mutex_);
    wake_ups_.push_back({.when = when, .channel = std::move(channel)});
  }
  const auto held = Hold();
  if (client_ != nullptr) client_->Yield();
}

void Producer::Work() {
  pthread_setname_np(pthread_self(), "tocsin-kafka");
  while (!stopping_) {
    Round(*client_, RunWakeUps());
    ReplaceFailed();
  }
  Drain(*client_);
  ReplaceBy(nullptr).reset();
  stopped_ = true;
}

std::unique_ptr<Client> Producer::ReplaceBy(std::unique_ptr<Client> next) {
  const std::unique_lock lock(gate_);
  return std::exchange(client_, std::move(next));
}

void Producer::Round(Client& client, Millis wait) {
  client.Poll(wait);
  JudgeSuspects();
  for (const std::shared_ptr<Channel>& channel : reported_) channel->Flush();
  reported_.clear();
}

void Producer::OnReport(Message& message, const rd_kafka_message_t& report) {
  const std::shared_ptr<Channel>& channel = message.batch->channel;
  if (IsOfBatch(report.err)) {
    suspects_.push_back({channel.get(), channel->round().size(), report.err, {report.rkt, report.partition}});
  }
  const bool failed = report.err != RD_KAFKA_RESP_ERR_NO_ERROR;
  const bool first = channel->Add({.message = decltype(Report::message)(&message),
                                   .delivered = failed ? VerdictOf(report.err, timeout_, LastError()) : Delivered()});
  if (first) reported_.push_back(channel);
}

// The messages of a batch are reported in one round. So if a round has one report of this kind for a partition, its
// message was alone; if it has more, they may belong to several batches, and another attempt will tell.
void Producer::JudgeSuspects() {
  std::map<std::pair<rd_kafka_topic_t*, int32_t>, size_t> counts;
  for (const Suspect& one : suspects_) ++counts[one.partition];
  for (const Suspect& one : suspects_) {
    one.channel->round()[one.at].delivered = VerdictInBatch(one.error, counts[one.partition] == 1);
  }
  suspects_.clear();
}

void Producer::OnClientError(std::string_view what) {
  last_error_ = what;
  last_error_at_ = clock_.IoNow();
}

std::string_view Producer::LastError() const {
  return !last_error_.empty() && clock_.IoNow() - last_error_at_ < kErrorLasts ? std::string_view(last_error_) : "";
}

Millis Producer::RunWakeUps() {
  const TimePoint now = clock_.IoNow();
  std::vector<WakeUp> due;
  TimePoint next = now + kPollMax;
  {
    const std::lock_guard lock(mutex_);
    const auto later = std::ranges::partition(wake_ups_, [now](const WakeUp& one) { return one.when > now; });
    std::ranges::move(later, std::back_inserter(due));
    wake_ups_.erase(later.begin(), later.end());
    for (const WakeUp& one : wake_ups_) next = std::min(next, one.when);
  }
  for (const WakeUp& one : due) {
    if (const std::shared_ptr<Channel> channel = one.channel.lock(); channel != nullptr) channel->Wake();
  }
  return std::chrono::ceil<Millis>(next - now);
}

void Producer::ReplaceFailed() {
  const std::string why = client_->FatalError();
  const TimePoint now = clock_.IoNow();
  if (why.empty() || now - client_made_at_ < kBetweenClients) return;
  client_made_at_ = now;
  OnClientError(why);
  Result<std::unique_ptr<Client>> made = Client::Make(options_, timeout_, *this);
  if (!made) {
    LogError("kafka: the producer has failed ({}), and a new one cannot be made: {}", why, made.error().message);
    return;
  }
  LogWarn("kafka: the producer has failed; a new one replaces it: {}", why);
  Drain(*ReplaceBy(*std::move(made)));
}

void Producer::Drain(Client& client) {
  while (client.under_way() > 0) {
    client.Purge();  // each time: the last purge misses a message that was between two queues
    Round(client, kDrainWait);
  }
}

}  // namespace tocsin::kafka
