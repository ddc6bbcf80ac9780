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
    suspects_.push_back({channel.get(),
                         channel->round().size(),
                         report.err,
                         {report.rkt, report.partition},
                         report.key_len == 0,
                         report.key_len + report.len});
  }
  Delivered delivered;
  if (report.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    const bool unsent = rd_kafka_message_status(&report) == RD_KAFKA_MSG_STATUS_NOT_PERSISTED;
    delivered = VerdictOf(report.err, timeout_, LastError(), unsent);
  }
  const bool first = channel->Add({.message = decltype(Report::message)(&message), .delivered = std::move(delivered)});
  if (first) reported_.push_back(channel);
}

// The messages of a batch are reported in one round. So if a round has one report of this kind for a partition, its
// message was alone; if it has more, they may belong to several batches, and another attempt will tell.
void Producer::JudgeSuspects() {
  struct Count {
    size_t all = 0;
    size_t keyless = 0;
    const Suspect* likeliest = nullptr;  // the largest, or the first of those
    size_t judged = 0;
  };
  std::map<std::pair<rd_kafka_topic_t*, int32_t>, Count> counts;
  for (const Suspect& one : suspects_) {
    Count& count = counts[one.partition];
    ++count.all;
    count.keyless += one.keyless ? 1 : 0;
    if (count.likeliest == nullptr || one.bytes > count.likeliest->bytes) count.likeliest = &one;
  }
  for (const Suspect& one : suspects_) {
    Count& count = counts[one.partition];
    one.channel->round()[one.at].delivered =
        VerdictInBatch(one.error, {.alone = count.all == 1,
                                   .keyless = one.keyless,
                                   .others_keyless = count.keyless > (one.keyless ? 1U : 0U),
                                   .other_likelier = count.likeliest != &one,
                                   .place = count.judged++});
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
