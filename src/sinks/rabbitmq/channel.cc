#include "sinks/rabbitmq/channel.h"

#include <utility>

#include "base/log.h"
#include "base/result.h"
#include "sinks/rabbitmq/publisher.h"

namespace tocsin::rabbitmq {
namespace {

constexpr Millis kCloseWithin{1'000};

}  // namespace

Channel::Channel(Publisher& publisher, Message message, Settings settings, Report report)
    : publisher_(publisher),
      message_(std::move(message)),
      settings_(settings),
      report_(std::move(report)),
      backoff_(settings.backoff_min, settings.backoff_max) {}

void Channel::Deliver(uint64_t batch_id, std::shared_ptr<const JobBatch> batch) {
  TOCSIN_CHECK(!closing_);
  if (!HasWork()) {
    progress_ = Now();
    publisher_.WakeAt(progress_ + settings_.timeout);
  }
  waiting_.push_back({.id = batch_id, .jobs = std::move(batch)});
}

bool Channel::Publish(size_t most) {
  Connection* const link = publisher_.Link();
  if (link == nullptr || publisher_.blocked_ || waiting_.empty()) return false;
  if (state_ == State::kIdle) Open();
  if (state_ != State::kOpen) return false;
  const TimePoint now = Now();
  size_t published = 0;
  const auto room = [&] { return window_.size() < settings_.in_flight && link->out().size() < kWriteBytes; };
  while (published < most && !waiting_.empty() && room()) {
    PublishNext(*link, now);
    ++published;
  }
  return published > 0;
}

void Channel::PublishNext(Connection& link, TimePoint now) {
  Batch& batch = waiting_.front();
  Handed handed{.batch_id = batch.id, .index = batch.next, .batch = batch.jobs, .published = now};
  if (++batch.next == batch.jobs->jobs.size()) waiting_.pop_front();
  const Status written = message_.Append(link.encoder(), link.out(), number_, handed.job());
  written ? window_.Add(std::move(handed)) : Settle(std::move(handed), Refuse(written.error().message));
}

void Channel::Open() {
  number_ = publisher_.TakeNumber(*this);
  if (number_ == 0) return;
  state_ = State::kOpening;
  Connection& link = *publisher_.Link();
  link.encoder().Method(link.out(), number_, AMQP_CHANNEL_OPEN_METHOD, amqp_channel_open_t{.out_of_band = BytesOf({})});
  link.encoder().Method(link.out(), number_, AMQP_CONFIRM_SELECT_METHOD, amqp_confirm_select_t{.nowait = 0});
}

void Channel::OnFrame(const amqp_frame_t& frame) {
  if (frame.frame_type == AMQP_FRAME_METHOD) {
    OnMethod(frame.payload.method);
  } else if (frame.frame_type == AMQP_FRAME_HEADER && state_ == State::kOpen) {
    OnReturned(*static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded));
  }
}

void Channel::OnMethod(const amqp_method_t& method) {
  if (method.id == AMQP_CHANNEL_CLOSE_METHOD) return BrokerClosed(As<amqp_channel_close_t>(method));
  if (method.id == AMQP_CHANNEL_CLOSE_OK_METHOD && state_ == State::kClosing) return ReleaseNumber();
  if (method.id == AMQP_CONFIRM_SELECT_OK_METHOD && state_ == State::kOpening) state_ = State::kOpen;
  if (state_ != State::kOpen) return;  // closing: everything has been answered
  if (method.id == AMQP_BASIC_ACK_METHOD) {
    const auto& ack = As<amqp_basic_ack_t>(method);
    Confirm(ack.delivery_tag, ack.multiple != 0, true);
  } else if (method.id == AMQP_BASIC_NACK_METHOD) {
    const auto& nack = As<amqp_basic_nack_t>(method);
    Confirm(nack.delivery_tag, nack.multiple != 0, false);
  } else if (method.id == AMQP_BASIC_RETURN_METHOD) {
    const auto& back = As<amqp_basic_return_t>(method);
    return_reason_ =
        fmt::format("RabbitMQ could not route it: {} {}, exchange \"{}\", routing key \"{}\"", back.reply_code,
                    TextOf(back.reply_text), TextOf(back.exchange), TextOf(back.routing_key));
  }
}

void Channel::OnReturned(const amqp_basic_properties_t& properties) {
  const std::optional<MessageName> name = NameOf(properties);
  if (return_reason_.empty() || !name || !window_.Return(name->id, name->token, std::exchange(return_reason_, {}))) {
    // Its confirm will follow, and would look like that of a job that arrived.
    Reset("RabbitMQ returned a message that was not sent");
  }
}

void Channel::Confirm(uint64_t tag, bool multiple, bool taken) {
  const bool known = window_.Confirm(tag, multiple, [this, taken](Handed&& handed, std::string&& returned) {
    SettleWindow(std::move(handed), std::move(returned),
                 taken ? Delivered() : Retry("RabbitMQ did not take it (nack): a queue is full or failed"));
  });
  if (!known) return Reset("RabbitMQ confirmed a message that was not sent");
  backoff_.Reset();
  close_reason_.clear();
  progress_ = Now();
  if (closing_ && window_.empty()) FinishClose();
}

void Channel::BrokerClosed(const amqp_channel_close_t& close) {
  close_reason_ = fmt::format("RabbitMQ closed the channel: {} {}", close.reply_code, TextOf(close.reply_text));
  if (Connection* const link = publisher_.Link()) {
    link->encoder().Method(link->out(), number_, AMQP_CHANNEL_CLOSE_OK_METHOD, amqp_channel_close_ok_t{});
  }
  const bool ours = state_ == State::kClosing;
  ReleaseNumber();
  if (ours) return;
  if (backoff_.fresh()) LogWarn("topic {}: {}; trying again until it stays open", message_.topic(), close_reason_);
  RetryWindow(close_reason_);
  if (closing_) return FinishClose();
  state_ = State::kPaused;
  resume_at_ = Now() + backoff_.Next();
  publisher_.WakeAt(resume_at_);
}

void Channel::Reset(const std::string& why) {
  Leave();
  RetryWindow(why);
  if (closing_) FinishClose();
}

void Channel::Leave() {
  Connection* const link = publisher_.Link();
  if (link == nullptr || (state_ != State::kOpen && state_ != State::kOpening)) return;
  state_ = State::kClosing;
  link->encoder().Method(
      link->out(), number_, AMQP_CHANNEL_CLOSE_METHOD,
      amqp_channel_close_t{
          .reply_code = AMQP_REPLY_SUCCESS, .reply_text = BytesOf("done"), .class_id = 0, .method_id = 0});
}

void Channel::ReleaseNumber() {
  publisher_.by_number_[std::exchange(number_, uint16_t{0})] = nullptr;
  state_ = State::kIdle;
  return_reason_.clear();
}

void Channel::OnConnectionLost(const std::string& why) {
  state_ = State::kIdle;
  number_ = 0;
  return_reason_.clear();
  RetryWindow(why);
  progress_ = Now();  // what waits may wait for the next connection
  if (closing_ && !closed_) FinishClose();
}

TimePoint Channel::Check(TimePoint now) {
  TimePoint next = TimePoint::max();
  if (state_ == State::kPaused && now >= resume_at_) state_ = State::kIdle;
  if (state_ == State::kPaused) next = resume_at_;
  if (closing_ && !closed_) {
    if (now < close_by_) return std::min(next, close_by_);
    Reset("the topic's delivery is changed or the server stops, and RabbitMQ has not confirmed it yet");
    return next;
  }
  if (!HasWork() || publisher_.blocked_) return next;
  if (now >= progress_ + settings_.timeout) {
    TimeOut();
    return next;
  }
  window_.GiveOvertaken(settings_.timeout, [this](Handed&& handed, std::string&& returned) {
    SettleWindow(std::move(handed), std::move(returned), Retry(TimeoutReason()));
  });
  return std::min(next, progress_ + settings_.timeout);
}

std::string Channel::TimeoutReason() const {
  return fmt::format("RabbitMQ did not confirm it within {} ms", settings_.timeout.count());
}

void Channel::TimeOut() {
  std::string why = publisher_.WhyDown();
  if (why.empty()) why = close_reason_;
  if (why.empty() && state_ == State::kIdle) why = "all channels of the connection to RabbitMQ are in use";
  if (why.empty()) why = TimeoutReason();
  // This uses up an attempt, though nothing was sent: so there is a back-off, and an end if the broker never comes
  // back.
  RetryWaiting(Retry(why));
  Reset(why);
}

void Channel::Close() {
  closing_ = true;
  RetryWaiting(Unsent("the topic's delivery is changed or the server stops"));
  if (window_.empty()) return FinishClose();
  close_by_ = Now() + kCloseWithin;
  publisher_.WakeAt(close_by_);
}

void Channel::FinishClose() {
  Leave();
  if (state_ == State::kPaused) state_ = State::kIdle;
  closed_ = true;
  QueueReport();
}

void Channel::Settle(Handed&& handed, Delivered delivered) {
  outcomes_.push_back({.batch_id = handed.batch_id, .index = handed.index, .delivered = std::move(delivered)});
  handed.batch.reset();
  QueueReport();
}

void Channel::SettleWindow(Handed&& handed, std::string&& returned, Delivered otherwise) {
  Settle(std::move(handed), returned.empty() ? std::move(otherwise) : Refuse(std::move(returned)));
}

void Channel::RetryWindow(const std::string& why) {
  window_.Clear([this, &why](Handed&& handed, std::string&& returned) {
    SettleWindow(std::move(handed), std::move(returned), Retry(why));
  });
}

void Channel::RetryWaiting(const Delivered& retry) {
  for (Batch& batch : std::exchange(waiting_, {})) {
    for (; batch.next < batch.jobs->jobs.size(); ++batch.next) {
      Settle({.batch_id = batch.id, .index = batch.next, .batch = batch.jobs}, retry);
    }
  }
}

void Channel::QueueReport() {
  if (!std::exchange(report_queued, true)) publisher_.to_report_.push_back(this);
}

void Channel::SendReport() {
  report_queued = false;
  if (reported_) return;
  reported_ = closed_;
  report_(std::exchange(outcomes_, {}), closed_);
}

}  // namespace tocsin::rabbitmq
