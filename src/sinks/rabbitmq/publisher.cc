#include "sinks/rabbitmq/publisher.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <pthread.h>

#include "base/log.h"
#include "base/result.h"
#include "net/stream.h"

namespace tocsin::rabbitmq {
namespace {

constexpr size_t kTurnJobs = 64;       // of one topic, before the next topic has its turn
constexpr Millis kChannelTurn{1'000};  // how long a topic keeps its channel although others have none

}  // namespace

/// The sink of one topic. It hands batches to the publisher's thread, and answers on its own loop when that thread
/// reports outcomes. Owned by the dispatcher of the topic, on the thread of its loop.
class Publisher::TopicSink final : public Sink {
 public:
  TopicSink(Publisher& publisher, Loop& loop, Message message, Channel::Settings settings) : publisher_(publisher) {
    const auto report = [this, &loop](std::vector<Outcome> outcomes, bool closed) {
      loop.Post([this, outcomes = std::move(outcomes), closed]() mutable { Take(std::move(outcomes), closed); });
    };
    auto channel = std::make_unique<Channel>(publisher_, std::move(message), settings, report);
    channel_ = channel.get();
    ++publisher_.sinks_;
    publisher_.loop_.Post([&publisher, channel = std::move(channel)]() mutable { publisher.Add(std::move(channel)); });
  }
  ~TopicSink() override {
    TOCSIN_CHECK(channel_ == nullptr);
    --publisher_.sinks_;
  }

  void Deliver(std::shared_ptr<const JobBatch> batch, Answer answer) override {
    const uint64_t id = ++last_id_;
    batches_.emplace(id, UnderWay{.answer = std::move(answer), .left = batch->jobs.size()});
    publisher_.loop_.Post([&publisher = publisher_, channel = channel_, id, batch = std::move(batch)]() mutable {
      publisher.Deliver(*channel, id, std::move(batch));
    });
  }

  void Close(Task done) override {
    done_ = std::move(done);
    publisher_.loop_.Post([&publisher = publisher_, channel = channel_] { publisher.CloseChannel(*channel); });
  }

 private:
  struct UnderWay {
    Answer answer;
    size_t left = 0;
  };

  void Take(std::vector<Outcome> outcomes, bool closed) {
    for (Outcome& outcome : outcomes) {
      const auto at = batches_.find(outcome.batch_id);
      TOCSIN_CHECK(at != batches_.end());
      if (at->second.left > 1) {
        --at->second.left;
        at->second.answer(outcome.index, std::move(outcome.delivered));
        continue;
      }
      // The answer may deliver the next batch: the map is as it should be before it runs.
      const auto last = batches_.extract(at);
      last.mapped().answer(outcome.index, std::move(outcome.delivered));
    }
    if (!closed) return;
    TOCSIN_CHECK(batches_.empty());
    channel_ = nullptr;
    std::exchange(done_, nullptr)();  // the last: it may destroy the sink
  }

  Publisher& publisher_;
  Channel* channel_ = nullptr;                      // the publisher's, used on its thread only; null once it is closed
  std::unordered_map<uint64_t, UnderWay> batches_;  // by id
  uint64_t last_id_ = 0;
  Task done_;
};

Result<std::unique_ptr<Publisher>> Publisher::Make(Options options) {
  auto tls = net::MakeTlsContext({.on = options.tls, .ca_file = options.ca_file, .cert_file = {}, .key_file = {}});
  if (!tls) {
    return FailField(Code::kInvalidArgument, "rabbitmq.ca_file", "rabbitmq.ca_file: {}", tls.error().message);
  }
  return std::unique_ptr<Publisher>(new Publisher(std::move(options), *std::move(tls)));
}

Publisher::Publisher(Options options, std::unique_ptr<boost::asio::ssl::context> tls)
    : options_(std::move(options)), tls_(std::move(tls)), thread_([this] { loop_.Run(); }) {
  pthread_setname_np(thread_.native_handle(), "tocsin-rabbit");
}

Publisher::~Publisher() {
  TOCSIN_CHECK(sinks_ == 0);
  loop_.Post([this] { Stop(); });
  thread_.join();
}

void Publisher::Stop() {
  stopping_ = true;
  if (Link() != nullptr) {
    connection_->RequestClose();
    return WakeAt(Now());
  }
  if (connection_ != nullptr) connection_->Close();
  loop_.Stop();
}

Status Publisher::Check(const Topic& topic) const {
  TOCSIN_TRY(Message::Make(topic, &options_.owners));
  return {};
}

Result<std::unique_ptr<Sink>> Publisher::Open(const Topic& topic, Loop& loop) {
  TOCSIN_ASSIGN(Message message, Message::Make(topic, &options_.owners));
  const Channel::Settings settings{.in_flight = topic.delivery.Number("in_flight"),
                                   .timeout = Millis(topic.delivery.Number("timeout_ms")),
                                   .backoff_min = options_.backoff_min,
                                   .backoff_max = options_.backoff_max};
  return std::make_unique<TopicSink>(*this, loop, std::move(message), settings);
}

void Publisher::Add(std::unique_ptr<Channel> channel) {
  channels_.push_back(std::move(channel));
  if (connection_ == nullptr && connect_at_ == TimePoint::max()) Connect();
}

void Publisher::Deliver(Channel& channel, uint64_t batch_id, std::shared_ptr<const JobBatch> batch) {
  channel.Deliver(batch_id, std::move(batch));
  Schedule(channel);
  EndTurn();
}

void Publisher::Schedule(Channel& channel) {
  if (channel.waiting() && !std::exchange(channel.is_scheduled, true)) scheduled_.push_back(&channel);
}

void Publisher::CloseChannel(Channel& channel) {
  ++closing_;
  channel.Close();
  // It has no jobs from here on, so it does not come back to either.
  DropFromLine(channel);
  if (std::exchange(channel.is_scheduled, false)) std::erase(scheduled_, &channel);
  EndTurn();
}

void Publisher::Connect() {
  connect_at_ = TimePoint::max();
  connection_ = std::make_shared<Connection>(loop_.io(), tls_.get(), options_, *this);
  connection_->Start();
  WakeAt(Now() + options_.connect_timeout);
}

void Publisher::OnUp() {
  if (!last_error_.empty() || !std::exchange(connected_once_, true)) LogInfo("{}: connected", options_.Where());
  last_error_.clear();
  was_up_ = true;
  backoff_.Reset();
  by_number_.assign(connection_->channel_max() + size_t{1}, nullptr);
  uses_.assign(by_number_.size(), {});
  last_number_ = 0;
  numbers_used_ = 0;
  WakeAt(Now());
}

void Publisher::OnFrame(const amqp_frame_t& frame) {
  if (frame.channel < by_number_.size() && by_number_[frame.channel] != nullptr)
    by_number_[frame.channel]->OnFrame(frame);
}

void Publisher::OnBlocked(bool blocked, std::string_view reason) {
  if (blocked == blocked_) return;
  blocked_ = blocked;
  if (blocked) return LogWarn("{} takes no jobs for now: {}; they wait", options_.Where(), reason);
  LogInfo("{} takes jobs again", options_.Where());
  for (const auto& channel : channels_) channel->OnUnblocked();
  WakeAt(Now());
}

void Publisher::OnLost(const std::string& why) {
  connection_ = nullptr;
  blocked_ = false;
  by_number_.clear();
  uses_.clear();
  staying_.clear();
  idle_.clear();
  for (Channel* const channel : std::exchange(line_, {})) channel->is_in_line = false;
  if (stopping_) return loop_.Stop();
  if (last_error_.empty()) LogWarn("{}; trying again until it is back", why);  // once, not at every try
  last_error_ = why;
  connect_at_ = Now() + backoff_.Next();
  WakeAt(connect_at_);
  if (std::exchange(was_up_, false)) {
    for (const auto& channel : channels_) {
      channel->OnConnectionLost(why);
      Schedule(*channel);
    }
  }
  EndTurn();
}

std::string Publisher::WhyDown() const {
  if (connection_ != nullptr && connection_->up()) return {};
  return last_error_.empty() ? fmt::format("{}: no connection yet", options_.Where()) : last_error_;
}

uint16_t Publisher::TakeNumber(Channel& channel) {
  const size_t numbers = by_number_.size() - 1;
  if (numbers_used_ == numbers || (!line_.empty() && line_.front() != &channel)) {
    if (!std::exchange(channel.is_in_line, true)) line_.push_back(&channel);
    return 0;
  }
  DropFromLine(channel);
  do {
    last_number_ = static_cast<uint16_t>(last_number_ % numbers + 1);
  } while (by_number_[last_number_] != nullptr);
  by_number_[last_number_] = &channel;
  ++numbers_used_;
  Use& use = uses_[last_number_];
  use.stays = true;
  use.place = staying_.insert(staying_.end(), last_number_);
  WakeLine();
  return last_number_;
}

void Publisher::GiveNumber(uint16_t number) {
  Leaves(number);
  by_number_[number] = nullptr;
  --numbers_used_;
  WakeLine();
}

void Publisher::Leaves(uint16_t number) {
  if (std::exchange(uses_[number].stays, false)) staying_.erase(uses_[number].place);
}

void Publisher::NoteIdle(uint16_t number) {
  if (!std::exchange(uses_[number].is_idle, true)) idle_.push_back(number);
}

void Publisher::DropFromLine(Channel& channel) {
  if (!std::exchange(channel.is_in_line, false)) return;
  if (line_.front() == &channel) return line_.pop_front();
  std::erase(line_, &channel);
}

void Publisher::WakeLine() {
  while (!line_.empty() && !line_.front()->waiting()) DropFromLine(*line_.front());  // it holds up the others
  if (!line_.empty() && Link() != nullptr && numbers_used_ + 1 < by_number_.size()) Schedule(*line_.front());
}

void Publisher::MakeRoom() {
  if (line_.empty() || Link() == nullptr) return;
  const auto free = [&] { return by_number_.size() - 1 - staying_.size(); };  // now, or soon
  while (free() < line_.size() && !idle_.empty()) {
    Channel* const channel = by_number_[idle_.front()];
    uses_[idle_.front()].is_idle = false;
    idle_.pop_front();
    ++looks_;
    if (channel != nullptr && !channel->leaving() && !channel->busy()) channel->GiveWay();
  }
  const TimePoint now = Now();
  while (free() < line_.size() && !staying_.empty()) {
    Channel* const oldest = by_number_[staying_.front()];
    ++looks_;
    if (now < oldest->opened_at() + kChannelTurn) {
      WakeAt(oldest->opened_at() + kChannelTurn);
      break;
    }
    oldest->GiveWay();
  }
  Link()->Flush();
}

void Publisher::Publish() {
  Connection* const link = Link();
  if (link == nullptr || blocked_) return;
  while (!scheduled_.empty() && link->out().size() < Channel::kWriteBytes) {
    Channel& channel = *scheduled_.front();
    scheduled_.pop_front();
    channel.is_scheduled = false;
    ++looks_;
    if (channel.Publish(kTurnJobs)) Schedule(channel);
  }
  link->Flush();
}

void Publisher::EndTurn() {
  WakeLine();
  Publish();
  MakeRoom();
  for (Channel* const channel : std::exchange(to_report_, {})) channel->SendReport();
  if (closing_ > 0) closing_ -= std::erase_if(channels_, [](const auto& channel) { return channel->gone(); });
}

void Publisher::WakeAt(TimePoint time) {
  // A timer that fires too early looks again; moving it later each time would cost more.
  if (time >= timer_at_) return;
  timer_at_ = time;
  timer_.expires_at(time);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    timer_at_ = TimePoint::max();
    OnTimer();
  });
}

void Publisher::OnTimer() {
  const TimePoint now = Now();
  if (now >= connect_at_) Connect();
  TimePoint next = connect_at_;
  if (connection_ != nullptr) next = std::min(next, connection_->Check(now));
  for (const auto& channel : channels_) {
    next = std::min(next, channel->Check(now));
    Schedule(*channel);
  }
  WakeAt(std::min(next, connect_at_));  // the connection may have been lost just now
  EndTurn();
}

}  // namespace tocsin::rabbitmq
