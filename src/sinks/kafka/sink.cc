#include "sinks/kafka/sink.h"

#include <utility>

#include "base/result.h"
#include "sinks/kafka/verdict.h"

namespace tocsin::kafka {
namespace {

constexpr Millis kFullWait{10};      // before another try if librdkafka's queue is full
constexpr Millis kCloseWait{1'000};  // for what is under way when the sink closes

}  // namespace

Result<Addressing> Addressing::Parse(const Topic& topic) {
  Addressing made{.topic = topic.name, .kafka_topic = {}, .key = {}};
  TOCSIN_ASSIGN(made.kafka_topic, Template::Parse("delivery.kafka_topic", topic.delivery.Text("kafka_topic")));
  TOCSIN_ASSIGN(made.key, Template::Parse("delivery.kafka_key", topic.delivery.Text("kafka_key")));
  return made;
}

KafkaSink::KafkaSink(std::shared_ptr<Producer> producer, Addressing addressing, Loop& loop)
    : producer_(std::move(producer)),
      addressing_(std::move(addressing)),
      loop_(loop),
      channel_(std::make_shared<Channel>(loop, *this)) {}

KafkaSink::~KafkaSink() {
  channel_->Detach();
  TOCSIN_CHECK(batches_.empty());
}

void KafkaSink::Deliver(std::shared_ptr<const JobBatch> batch, Answer answer) {
  TOCSIN_CHECK(!closing_ && !batch->jobs.empty());
  auto* const taken = new Batch(channel_, std::move(batch), std::move(answer));
  under_way_ += taken->unanswered;
  batches_.insert(taken);
  waiting_.push_back(taken);
  if (waiting_.size() == 1) Pump();  // otherwise it waits behind the others
}

void KafkaSink::Pump() {
  std::vector<Known> known;  // answered after Hold ends: the answers may bring more jobs
  bool full = false;
  {
    const auto held = producer_->Hold();
    full = !SendWaiting(producer_->client(), known);
  }
  if (full && !std::exchange(wake_asked_, true)) producer_->WakeAt(producer_->Now() + kFullWait, channel_);
  for (Known& one : known) AnswerOne(*one.message, std::move(one.delivered));
  EndCloseIfDone();
}

bool KafkaSink::SendWaiting(Client& client, std::vector<Known>& known) {
  while (!waiting_.empty()) {
    Batch& batch = *waiting_.front();
    for (; batch.next < batch.messages.size(); ++batch.next) {
      if (!SendOne(client, batch, batch.messages[batch.next], known)) return false;
    }
    waiting_.pop_front();
  }
  return true;
}

bool KafkaSink::SendOne(Client& client, Batch& batch, Message& message, std::vector<Known>& known) {
  const JobView& job = batch.jobs->jobs[message.index];
  name_.clear();
  addressing_.kafka_topic.Append(name_, addressing_.topic, job);
  Status valid = CheckTopicName(name_);
  if (valid && addressing_.owners != nullptr) {
    valid = addressing_.owners->Check(Owned::kKafka, name_, addressing_.topic, {});
  }
  if (!valid) {
    known.push_back({&message, Refuse(valid.error().message)});
    return true;
  }
  key_.clear();
  addressing_.key.Append(key_, addressing_.topic, job);
  rd_kafka_topic_t* const to = client.Topic(name_);
  const rd_kafka_resp_err_t error =
      to == nullptr ? RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION : client.Send(to, key_, addressing_.topic, job, message);
  if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL) return false;
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    known.push_back({&message, VerdictOf(error, producer_->timeout(), "", true)});
  return true;
}

void KafkaSink::OnReports(std::vector<Report> reports) {
  for (Report& report : reports) AnswerOne(*report.message, std::move(report.delivered));
  if (!waiting_.empty()) Pump();
  EndCloseIfDone();
}

void KafkaSink::OnWake() {
  wake_asked_ = false;
  if (!waiting_.empty()) Pump();
  if (closing_ && producer_->Now() >= close_by_) {
    for (Batch* const batch : std::vector(batches_.begin(), batches_.end())) {
      AnswerFrom(*batch, 0, Retry("the delivery to Kafka was closed before Kafka confirmed"));
    }
  }
  EndCloseIfDone();
}

void KafkaSink::AnswerOne(Message& message, Delivered delivered) {
  if (std::exchange(message.answered, true)) return;  // it was answered when the sink closed
  Batch* const batch = message.batch;
  --under_way_;
  batch->answer(message.index, std::move(delivered));
  if (--batch->unanswered > 0) return;
  batch->answer = nullptr;
  batches_.erase(batch);
  batch->Release();
}

void KafkaSink::AnswerFrom(Batch& batch, size_t index, const Delivered& delivered) {
  batch.Hold();
  for (; index < batch.messages.size(); ++index) AnswerOne(batch.messages[index], delivered);
  batch.Release();
}

void KafkaSink::Close(Task done) {
  TOCSIN_CHECK(!closing_);
  closing_ = true;
  closed_ = std::move(done);
  // Give back what librdkafka has not got yet, and wait for the rest.
  for (Batch* const batch : std::exchange(waiting_, {})) {
    AnswerFrom(*batch, batch->next, Unsent("the delivery to Kafka was closed"));
  }
  close_by_ = producer_->Now() + kCloseWait;
  if (under_way_ > 0) producer_->WakeAt(close_by_, channel_);
  EndCloseIfDone();
}

void KafkaSink::EndCloseIfDone() {
  if (closed_ == nullptr || under_way_ > 0) return;
  channel_->Detach();
  loop_.Post(std::exchange(closed_, nullptr));
}

}  // namespace tocsin::kafka
