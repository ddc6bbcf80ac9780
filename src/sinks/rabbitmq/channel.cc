#include "sinks/rabbitmq/channel.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace tocsin::rabbitmq {
namespace {

constexpr Millis kCloseWithin{1'000};

TimePoint Now() { return std::chrono::steady_clock::now(); }

template <class T>
const T& As(const amqp_method_t& method) {
  return *static_cast<const T*>(method.decoded);
}

}  // namespace

Channel::Channel(Owner& owner, Message message, Settings settings, Report report)
    : owner_(owner), message_(std::move(message)), settings_(settings), report_(std::move(report)) {}

void Channel::Deliver(uint64_t batch_id, std::shared_ptr<const JobBatch> batch) {
  TOCSIN_CHECK(!closing_);
  if (!HasWork()) {
    progress_ = Now();
    owner_.WakeAt(progress_ + settings_.timeout);
  }
  waiting_.push_back({.id = batch_id, .jobs = std::move(batch)});
}

bool Channel::Publish(size_t most) {
  Connection* const link = owner_.Link();
  if (link == nullptr || owner_.Blocked() || waiting_.empty()) return false;
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
  if (written) {
    window_.Add(std::move(handed));
  } else {
    Settle(std::move(handed), DeliverOutcome::kRefused, written.error().message);
  }
}

void Channel::Open() {
  number_ = owner_.TakeNumber(*this);
  if (number_ == 0) return;
  state_ = State::kOpening;
  Connection& link = *owner_.Link();
  link.encoder().Method(link.out(), number_, AMQP_CHANNEL_OPEN_METHOD, amqp_channel_open_t{.out_of_band = BytesOf({})});
  link.encoder().Method(link.out(), number_, AMQP_CONFIRM_SELECT_METHOD, amqp_confirm_select_t{.nowait = 0});
}

void Channel::Heard(const amqp_frame_t& frame) {
  if (frame.frame_type == AMQP_FRAME_METHOD) {
    HeardMethod(frame.payload.method);
  } else if (frame.frame_type == AMQP_FRAME_HEADER && state_ == State::kOpen) {
    HeardReturned(*static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded));
  }
}

void Channel::HeardMethod(const amqp_method_t& method) {
  if (method.id == AMQP_CHANNEL_CLOSE_METHOD) return BrokerClosed(As<amqp_channel_close_t>(method));
  if (method.id == AMQP_CHANNEL_CLOSE_OK_METHOD && state_ == State::kClosing) return ReleaseNumber(State::kIdle);
  if (method.id == AMQP_CONFIRM_SELECT_OK_METHOD && state_ == State::kOpening) state_ = State::kOpen;
  if (state_ != State::kOpen) return;  // what comes after it was told to close has been answered
  if (method.id == AMQP_BASIC_ACK_METHOD) {
    const auto& ack = As<amqp_basic_ack_t>(method);
    Confirm(ack.delivery_tag, ack.multiple != 0, true);
  } else if (method.id == AMQP_BASIC_NACK_METHOD) {
    const auto& nack = As<amqp_basic_nack_t>(method);
    Confirm(nack.delivery_tag, nack.multiple != 0, false);
  } else if (method.id == AMQP_BASIC_RETURN_METHOD) {
    const auto& back = As<amqp_basic_return_t>(method);
    returning_ = fmt::format("RabbitMQ could not route it: {} {}, exchange \"{}\", routing key \"{}\"", back.reply_code,
                             TextOf(back.reply_text), TextOf(back.exchange), TextOf(back.routing_key));
  }
}

void Channel::HeardReturned(const amqp_basic_properties_t& properties) {
  const std::optional<MessageName> name = NameOf(properties);
  if (returning_.empty() || !name || !window_.Return(name->id, name->token, std::exchange(returning_, {}))) {
    // Its confirm will follow, and would pass for that of a job that arrived.
    Reset("RabbitMQ gave back a message that was not sent");
  }
}

void Channel::Confirm(uint64_t tag, bool multiple, bool taken) {
  const bool known = window_.Confirm(tag, multiple, [this, taken](Handed&& handed, std::string&& returned) {
    if (!returned.empty()) {
      Settle(std::move(handed), DeliverOutcome::kRefused, std::move(returned));
    } else if (taken) {
      Settle(std::move(handed), DeliverOutcome::kConfirmed, {});
    } else {
      Settle(std::move(handed), DeliverOutcome::kRetry, "RabbitMQ did not take it (nack): a queue is full or failed");
    }
  });
  if (!known) return Reset("RabbitMQ confirmed a message that was not sent");
  rest_ = Millis(0);
  trouble_.clear();
  progress_ = Now();
  if (closing_ && window_.empty()) FinishClose();
}

void Channel::BrokerClosed(const amqp_channel_close_t& close) {
  trouble_ = fmt::format("RabbitMQ closed the channel: {} {}", close.reply_code, TextOf(close.reply_text));
  if (Connection* const link = owner_.Link()) {
    link->encoder().Method(link->out(), number_, AMQP_CHANNEL_CLOSE_OK_METHOD, amqp_channel_close_ok_t{});
  }
  const bool ours = state_ == State::kClosing;
  ReleaseNumber(State::kIdle);
  if (ours) return;
  if (rest_ == Millis(0)) LogWarn("topic {}: {}; trying again until it stays open", message_.topic(), trouble_);
  RetryWindow(trouble_);
  if (closing_) return FinishClose();
  Rest();
}

void Channel::Rest() {
  state_ = State::kResting;
  rest_ = std::clamp(rest_ * 2, settings_.rest_min, settings_.rest_max);
  std::uniform_int_distribution<int64_t> blur(rest_.count() / 2, rest_.count());
  rest_until_ = Now() + Millis(blur(owner_.Random()));
  owner_.WakeAt(rest_until_);
}

void Channel::Reset(const std::string& why) {
  Leave();
  RetryWindow(why);
  if (closing_) FinishClose();
}

void Channel::Leave() {
  Connection* const link = owner_.Link();
  if (link == nullptr || (state_ != State::kOpen && state_ != State::kOpening)) return;
  state_ = State::kClosing;
  link->encoder().Method(
      link->out(), number_, AMQP_CHANNEL_CLOSE_METHOD,
      amqp_channel_close_t{
          .reply_code = AMQP_REPLY_SUCCESS, .reply_text = BytesOf("done"), .class_id = 0, .method_id = 0});
}

void Channel::ReleaseNumber(State next) {
  owner_.FreeNumber(std::exchange(number_, uint16_t{0}));
  state_ = next;
  returning_.clear();
}

void Channel::ConnectionLost(const std::string& why) {
  state_ = State::kIdle;
  number_ = 0;
  returning_.clear();
  RetryWindow(why);
  progress_ = Now();  // what waits has its time for the next connection
  if (closing_ && !closed_) FinishClose();
}

TimePoint Channel::Check(TimePoint now) {
  TimePoint next = TimePoint::max();
  if (state_ == State::kResting) {
    if (now >= rest_until_) {
      state_ = State::kIdle;
    } else {
      next = rest_until_;
    }
  }
  if (closing_ && !closed_) {
    if (now < close_by_) return std::min(next, close_by_);
    Reset("the topic's delivery is changed or the server stops, and RabbitMQ has not confirmed it yet");
    return next;
  }
  if (!HasWork() || owner_.Blocked()) return next;
  if (now >= progress_ + settings_.timeout) {
    TimeOut();
    return next;
  }
  window_.GiveOvertaken(settings_.timeout, [this](Handed&& handed, std::string&& returned) {
    if (returned.empty()) return Settle(std::move(handed), DeliverOutcome::kRetry, Silence());
    Settle(std::move(handed), DeliverOutcome::kRefused, std::move(returned));
  });
  return std::min(next, progress_ + settings_.timeout);
}

std::string Channel::Silence() const {
  return fmt::format("RabbitMQ did not confirm it within {} ms", settings_.timeout.count());
}

void Channel::TimeOut() {
  std::string why = owner_.Trouble();
  if (why.empty()) why = trouble_;
  if (why.empty() && state_ == State::kIdle) why = "all channels of the connection to RabbitMQ are in use";
  if (why.empty()) why = Silence();
  // An attempt each, though nothing was sent: with its back-off, and an end where the broker never comes back.
  RetryWaiting({.outcome = DeliverOutcome::kRetry, .delay = {}, .reason = why});
  Reset(why);
}

void Channel::Close() {
  closing_ = true;
  RetryWaiting({.outcome = DeliverOutcome::kRetry,
                .delay = {},
                .reason = "the topic's delivery is changed or the server stops",
                .unsent = true});
  if (window_.empty()) return FinishClose();
  close_by_ = Now() + kCloseWithin;
  owner_.WakeAt(close_by_);
}

void Channel::FinishClose() {
  Leave();
  if (state_ == State::kResting) state_ = State::kIdle;
  closed_ = true;
  News();
}

void Channel::Settle(Handed&& handed, Delivered delivered) {
  outcomes_.push_back({.batch_id = handed.batch_id, .index = handed.index, .delivered = std::move(delivered)});
  handed.batch.reset();
  News();
}

void Channel::RetryWindow(const std::string& why) {
  window_.Clear([this, &why](Handed&& handed, std::string&& returned) {
    if (returned.empty()) return Settle(std::move(handed), DeliverOutcome::kRetry, why);
    Settle(std::move(handed), DeliverOutcome::kRefused, std::move(returned));
  });
}

void Channel::RetryWaiting(const Delivered& retry) {
  for (Batch& batch : std::exchange(waiting_, {})) {
    for (; batch.next < batch.jobs->jobs.size(); ++batch.next) {
      Settle({.batch_id = batch.id, .index = batch.next, .batch = batch.jobs}, retry);
    }
  }
}

void Channel::News() {
  if (!std::exchange(has_news, true)) owner_.HasNews(*this);
}

void Channel::SendReport() {
  has_news = false;
  if (reported_) return;
  reported_ = closed_;
  report_(std::exchange(outcomes_, {}), closed_);
}

}  // namespace tocsin::rabbitmq
