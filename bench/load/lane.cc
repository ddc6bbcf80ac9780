#include "load/lane.h"

#include <cstring>

#include "shared/times.h"

namespace tocsin::bench {
namespace {

constexpr size_t kReadBytes = 256 << 10;

}  // namespace

Lane::Lane(Poller& poller, const Endpoint& endpoint, const std::string& ca, Protocol& protocol, Owner& owner)
    : poller_(poller), protocol_(protocol), owner_(owner), channel_(endpoint, ca), in_(2 * kReadBytes) {
  poller_.Add(channel_.fd(), *this);
}

void Lane::Submit(const Jobs& jobs, Instant since) {
  Request request = protocol_.Submit(out_, jobs);
  request.call = Call::kSubmit;
  request.jobs = jobs.count;
  Push(request, since);
}

void Lane::Reserve(size_t most) {
  Request request = protocol_.Reserve(out_, most);
  request.call = Call::kReserve;
  Push(request, SteadyClock::now());
}

void Lane::Ack(const Token* tokens, size_t count) {
  Request request = protocol_.Ack(out_, tokens, count);
  request.call = Call::kAck;
  request.jobs = static_cast<uint32_t>(count);
  Push(request, SteadyClock::now());
}

void Lane::Push(Request request, Instant since) {
  request.since = since;
  requests_.push_back(request);
}

void Lane::Flush() {
  while (sent_ < out_.size()) {
    const ssize_t sent = channel_.Send(out_.data() + sent_, out_.size() - sent_);
    if (sent < 0 && errno != EAGAIN) Die("the server closed a connection: {}", std::strerror(errno));
    if (sent < 0) {
      if (!std::exchange(blocked_, true)) poller_.WantWrite(channel_.fd(), *this, true);
      return;
    }
    sent_ += static_cast<size_t>(sent);
  }
  out_.clear();
  sent_ = 0;
  if (std::exchange(blocked_, false)) poller_.WantWrite(channel_.fd(), *this, false);
}

bool Lane::Read() {
  if (in_.size() - end_ < kReadBytes) {
    std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    if (in_.size() - end_ < kReadBytes) in_.resize(2 * in_.size());
  }
  const ssize_t got = channel_.Receive(in_.data() + end_, in_.size() - end_);
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) Die("the server closed a connection with {} requests under way", requests_.size());
  received_ns_ = WallNanos();
  end_ += static_cast<size_t>(got);
  return true;
}

void Lane::OnReady() {
  if (blocked_) Flush();
  do {
    if (!Read()) return;
    TakeAnswers();
  } while (channel_.HasUnread());
}

void Lane::TakeAnswers() {
  std::string_view rest(in_.data() + begin_, end_ - begin_);
  while (!rest.empty()) {
    if (requests_.empty()) Die("an answer without a request: {}", rest.substr(0, 200));
    if (!protocol_.Take(rest, requests_.front(), owner_)) break;
    const Request request = requests_.front();
    requests_.pop_front();
    owner_.Answered(*this, request);
  }
  begin_ = end_ - rest.size();
  if (begin_ == end_) begin_ = end_ = 0;
}

}  // namespace tocsin::bench
