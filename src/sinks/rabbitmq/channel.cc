#include "sinks/rabbitmq/channel.h"

#include <utility>

#include "base/log.h"
#include "base/result.h"
#include "sinks/rabbitmq/publisher.h"

namespace tocsin::rabbitmq {
namespace {

constexpr Millis kCloseWithin{1'000};
constexpr size_t kBarredMax = 1'000;

/// RabbitMQ's words when it closes a channel: "NOT_FOUND - no exchange 'name' in vhost '/'". Empty: they name none.
std::string ExchangeIn(std::string_view text) {
  constexpr std::string_view kBefore = "exchange '";
  const size_t before = text.find(kBefore);
  const size_t end = text.rfind("' in vhost");
  if (before == std::string_view::npos || end == std::string_view::npos || end < before + kBefore.size()) return {};
  return std::string(text.substr(before + kBefore.size(), end - before - kBefore.size()));
}

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
  if (link == nullptr || publisher_.blocked_ || !waiting()) return false;
  if (state_ == State::kIdle) Open();
  if (state_ != State::kOpen || gives_way_) return false;
  const TimePoint now = Now();
  size_t published = 0;
  const auto room = [&] { return window_.size() < settings_.in_flight && link->out().size() < kWriteBytes; };
  while (published < most && waiting() && room()) {
    PublishNext(*link, now);
    ++published;
  }
  NoteIdle();
  return published > 0;
}

Handed Channel::TakeNext() {
  if (!again_.empty()) {
    Handed handed = std::move(again_.front());
    again_.pop_front();
    return handed;
  }
  Batch& batch = waiting_.front();
  Handed handed{.batch_id = batch.id, .index = batch.next, .batch = batch.jobs};
  if (++batch.next == batch.jobs->jobs.size()) waiting_.pop_front();
  return handed;
}

const Channel::Bar* Channel::BarOf(const JobView& job, TimePoint now) {
  if (barred_.empty()) return nullptr;
  const auto at = barred_.find(message_.ExchangeOf(job));
  if (at == barred_.end()) return nullptr;
  if (now < at->second.until) return &at->second;
  barred_.erase(at);
  return nullptr;
}

void Channel::PublishNext(Connection& link, TimePoint now) {
  const bool again = !again_.empty();
  Handed handed = TakeNext();
  handed.published = now;
  if (const Bar* const bar = BarOf(handed.job(), now)) {
    if (again) return Settle(std::move(handed), Retry(bar->reason));  // the broker may have it
    Delivered delivered = Unsent(bar->reason);
    delivered.delay = std::chrono::ceil<Millis>(bar->until - now);
    return Settle(std::move(handed), std::move(delivered));
  }
  const Status written = message_.Append(link.encoder(), link.out(), number_, handed.job());
  written ? window_.Add(std::move(handed)) : Settle(std::move(handed), Refuse(written.error().message));
}

void Channel::Open() {
  number_ = publisher_.TakeNumber(*this);
  if (number_ == 0) return;
  state_ = State::kOpening;
  opened_at_ = Now();
  TOCSIN_CHECK(window_.empty());
  window_.Clear([](Handed&&, std::string&&) {});  // the tags of a new channel begin at 1 again
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
  if (method.id == AMQP_CONFIRM_SELECT_OK_METHOD && state_ == State::kOpening) {
    state_ = State::kOpen;
    publisher_.Schedule(*this);
    NoteIdle();
  }
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
  publisher_.Schedule(*this);  // the window has room
  if (!window_.empty()) return;
  NoteIdle();
  if (gives_way_) Leave();
  if (closing_) FinishClose();
}

void Channel::NoteIdle() {
  if (state_ == State::kOpen && !gives_way_ && !HasWork()) publisher_.NoteIdle(number_);
}

void Channel::GiveWay() {
  gives_way_ = true;
  publisher_.Leaves(number_);
  if (window_.empty()) Leave();
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
  const std::string exchange = ExchangeIn(TextOf(close.reply_text));
  if (closing_ || exchange.empty() || !message_.ExchangeDependsOnJob() || !Blame(exchange)) RetryWindow(close_reason_);
  if (closing_) return FinishClose();
  progress_ = Now();
  state_ = State::kPaused;
  resume_at_ = Now() + backoff_.Next();
  publisher_.WakeAt(resume_at_);
}

bool Channel::Blame(const std::string& exchange) {
  if (!window_.Any([&](const JobView& job) { return message_.ExchangeOf(job) == exchange; })) return false;
  if (barred_.size() >= kBarredMax) barred_.clear();
  barred_[exchange] = {.until = Now() + settings_.backoff_max, .reason = close_reason_};
  std::deque<Handed> innocent;
  window_.Clear([&](Handed&& handed, std::string&& returned) {
    if (!returned.empty() || message_.ExchangeOf(handed.job()) == exchange) {
      return SettleWindow(std::move(handed), std::move(returned), Retry(close_reason_));
    }
    innocent.push_back(std::move(handed));
  });
  again_.insert(again_.begin(), std::make_move_iterator(innocent.begin()), std::make_move_iterator(innocent.end()));
  publisher_.Schedule(*this);
  return true;
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
  publisher_.Leaves(number_);
  link->encoder().Method(
      link->out(), number_, AMQP_CHANNEL_CLOSE_METHOD,
      amqp_channel_close_t{
          .reply_code = AMQP_REPLY_SUCCESS, .reply_text = BytesOf("done"), .class_id = 0, .method_id = 0});
}

void Channel::ReleaseNumber() {
  publisher_.GiveNumber(std::exchange(number_, uint16_t{0}));
  state_ = State::kIdle;
  gives_way_ = false;
  return_reason_.clear();
  publisher_.Schedule(*this);
}

void Channel::OnConnectionLost(const std::string& why) {
  state_ = State::kIdle;
  number_ = 0;
  gives_way_ = false;
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
  if (gives_way_ && window_.empty()) Leave();
  NoteIdle();
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
  RetryWaiting(why);
  Reset(why);
}

void Channel::Close() {
  closing_ = true;
  RetryWaiting("the topic's delivery is changed or the server stops");
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

void Channel::RetryWaiting(const std::string& why) {
  for (Handed& handed : std::exchange(again_, {})) Settle(std::move(handed), Retry(why));  // the broker may have it
  for (Batch& batch : std::exchange(waiting_, {})) {
    for (; batch.next < batch.jobs->jobs.size(); ++batch.next) {
      Settle({.batch_id = batch.id, .index = batch.next, .batch = batch.jobs}, Unsent(why));
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
