#include "connection.h"

#include <charconv>
#include <cstring>

#include <sys/socket.h>
#include <unistd.h>

namespace tocsin::bench {
namespace {

constexpr size_t kReadChunk = 256 << 10;

template <class T>
T Number(std::string_view text, std::string_view what) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) Die("{} is not a number: {}", what, text.substr(0, 40));
  return value;
}

size_t BodyBytes(std::string_view head) {
  constexpr std::string_view kName = "\r\nContent-Length: ";
  const size_t at = head.find(kName);
  if (at == std::string_view::npos) Die("an answer has no Content-Length: {}", head);
  return Number<size_t>(head.substr(at + kName.size()), "Content-Length");
}

}  // namespace

Endpoint ParseUrl(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) Die("{} does not begin with {}", url, kScheme);
  return Endpoint::Parse(url.substr(kScheme.size()));
}

std::string MakeRequest(std::string_view method, std::string_view path, std::string_view body) {
  return fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}", method, path, body.size(),
                     body);
}

Connection::Connection(Poller& poller, const Endpoint& endpoint) : poller_(poller), fd_(Connect(endpoint)) {
  poller_.Add(fd_, *this);
}

Connection::~Connection() { close(fd_); }

void Connection::Send(std::string_view request, const Handler& handler) {
  if (busy_) Die("a second request on a busy connection");
  busy_ = true;
  out_ = request;
  handler_ = &handler;
  sent_at_ = SteadyClock::now();
  Write();
}

void Connection::Write() {
  while (!out_.empty()) {
    const ssize_t sent = send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) Die("the server closed a connection: {}", std::strerror(errno));
    if (sent < 0) {
      if (!std::exchange(blocked_, true)) poller_.WantWrite(fd_, *this, true);
      return;
    }
    out_.remove_prefix(static_cast<size_t>(sent));
  }
  if (std::exchange(blocked_, false)) poller_.WantWrite(fd_, *this, false);
}

void Connection::OnReady() {
  if (!out_.empty()) Write();
  if (Read()) TakeAnswer();
}

bool Connection::Read() {
  thread_local std::string chunk(kReadChunk, '\0');
  const ssize_t got = recv(fd_, chunk.data(), chunk.size(), 0);
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) Die("the server closed a connection{}", busy_ ? " that waits for an answer" : "");
  in_.append(chunk.data(), static_cast<size_t>(got));
  if (answer_bytes_ == 0) {
    const size_t end = in_.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    head_bytes_ = end + 4;
    answer_bytes_ = head_bytes_ + BodyBytes(std::string_view(in_).substr(0, end));
  }
  return in_.size() >= answer_bytes_;
}

void Connection::TakeAnswer() {
  if (!busy_ || in_.size() > answer_bytes_) Die("an answer without a request");
  const std::string whole = std::exchange(in_, {});
  const Answer answer{.status = Number<int>(std::string_view(whole).substr(9), "a status"),
                      .body = std::string_view(whole).substr(head_bytes_),
                      .took = SteadyClock::now() - sent_at_};
  answer_bytes_ = 0;
  busy_ = false;
  (*handler_)(*this, answer);
}

std::pair<int, std::string> Ask(const Endpoint& endpoint, std::string_view request) {
  Poller poller;
  Connection connection(poller, endpoint);
  std::pair<int, std::string> got;
  const Connection::Handler handler = [&](Connection&, const Answer& answer) {
    got = {answer.status, std::string(answer.body)};
  };
  connection.Send(request, handler);
  const Instant end = SteadyClock::now() + std::chrono::seconds(10);
  while (connection.busy()) {
    if (SteadyClock::now() > end) Die("no answer within 10 s");
    poller.Turn(end);
  }
  return got;
}

}  // namespace tocsin::bench
