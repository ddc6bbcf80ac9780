#include "frontend/resp/session.h"

#include <cstring>

#include <poll.h>

#include "base/log.h"
#include "base/words.h"
#include "frontend/resp/commands/commands.h"
#include "frontend/resp/server.h"

namespace tocsin::resp {
namespace {

using boost::asio::buffer;
using boost::system::error_code;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr SteadyTime kNoDeadline = SteadyTime::max();
constexpr size_t kUnsentMax = 1 << 20;
constexpr size_t kSlotsMax = 1024;
constexpr size_t kInFlightMax = 4 << 20;  // of commands that are not answered
constexpr size_t kAtOnceMax = 64;         // commands without a batch, before other connections have their turn
constexpr size_t kTailMax = 16 << 10;
constexpr size_t kAheadMax = 64 << 10;     // read behind a command that holds
constexpr size_t kStrangerMax = 16 << 10;  // a command of somebody who is not logged in
constexpr size_t kStrangerArguments = 64;
constexpr size_t kOptionsMax = 128;  // arguments besides jobs or tokens
constexpr size_t kNameMax = 128;
constexpr size_t kMovedBytes = 64 << 10;  // a transfer's deadline begins anew with so many bytes
constexpr Millis kFrameTime{60'000};
constexpr Millis kWriteTime{60'000};
constexpr Millis kLogInTime{30'000};
constexpr Millis kDrainTime{2'000};
constexpr Millis kLingerTime{2'000};

}  // namespace

Session::Session(Server& server, net::Socket socket, net::ConnectionPass pass, uint64_t id)
    : Connection(server.exceptions()),
      server_(server),
      socket_(std::move(socket)),
      pass_(std::move(pass)),
      id_(id),
      tokens_(server.tokens()),
      request_charge_(server.budget(), net::Charge::For::kRequest),
      pipeline_(*this),
      answer_charge_(server.budget(), net::Charge::For::kAnswer) {}

void Session::Start() {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  LimitLogIn();
  WaitToRead();
}

void Session::Close() {
  if (closed_) return;
  closed_ = true;
  if (parked_) {
    const ReserveId parked = *parked_;
    Unpark();
    server_.context().service.CancelReserve(parked);
  }
  error_code ignored;
  socket_.close(ignored);
  pass_.reset();
  if (chunk_) server_.chunks().GiveBack(std::move(chunk_));
  server_.Remove(*this);
}

void Session::Drain() {
  closing_ = true;
  drain_deadline_ = server_.loop().clock().IoNow() + kDrainTime;
  FinishIfDone();
}

std::string Session::Peer() const {
  error_code error;
  const auto peer = socket_.remote_endpoint(error);
  if (error) return "?";
  const std::string host = peer.address().to_string();
  return fmt::format("{}:{}", peer.address().is_v6() ? "[" + host + "]" : host, peer.port());
}

// Who calls.

Status Session::LogIn(std::string_view token) {
  if (tokens_ == nullptr) return {};
  const auth::Grant* const grant = tokens_->Find(token);
  if (grant == nullptr) return Fail(Code::kUnauthenticated, "the token is not known: it is mistyped, or revoked");
  token_ = token;
  grant_ = grant;
  LimitLogIn();
  return {};
}

void Session::LimitLogIn() {
  login_deadline_ = IsStranger() ? std::min(login_deadline_, server_.loop().clock().IoNow() + kLogInTime) : kNoDeadline;
}

Status Session::CheckCaller(const Command& command, std::string_view topic) const {
  if (tokens_ == nullptr || command.access == auth::Access::kOpen) return {};
  if (grant_ == nullptr) {
    return Fail(Code::kUnauthenticated, "this server needs a token: AUTH TOKEN (tocsin token create makes one)");
  }
  return auth::CheckGrant(*grant_, command.access, topic);
}

void Session::TokensChanged() {
  tokens_ = server_.tokens();
  grant_ = tokens_ == nullptr || token_.empty() ? nullptr : tokens_->Find(token_);
  LimitLogIn();
  if (IsStranger()) token_.clear();
  if (parked_ && !CheckCaller(*FindCommand("JOB.RESERVE"), parked_topic_))
    server_.context().service.CancelReserve(*parked_);
}

void Session::Reset() {
  pipeline_.Flush();  // the commands before it are answered in their own protocol
  protocol_ = Protocol::kResp2;
  name_.clear();
  token_.clear();
  grant_ = nullptr;
  LimitLogIn();
}

Status Session::SetName(std::string_view name) {
  const bool plain = std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f; });
  if (name.size() > kNameMax || !plain) {
    return FailField(Code::kInvalidArgument, "name", "the name has {} bytes: it takes up to {} visible ones, no spaces",
                     name.size(), kNameMax);
  }
  name_ = name;
  return {};
}

FrameLimits Session::Limits() const {
  if (IsStranger()) return {kStrangerMax, kStrangerArguments};
  return {server_.options().frame_bytes_max, server_.context().service.limits().batch + kOptionsMax};
}

// Reading.

bool Session::CanBegin() {
  if (closing_ || pipeline_.holding() || pipeline_.size() > kSlotsMax) return false;
  const size_t unsent = Unsent();
  const size_t in_flight = pipeline_.in_flight();
  if (unsent > (IsStranger() ? kStrangerMax : kUnsentMax) || in_flight > kInFlightMax) return false;
  // What is small is never refused; for more there has to be room, and until then the client waits.
  constexpr size_t kSmall = net::Budget::kSmallBytes;
  return (unsent <= kSmall || answer_charge_.Reach(unsent)) &&
         (in_flight <= kSmall || request_charge_.Reach(in_flight));
}

void Session::LowerCharges() {
  request_charge_.Lower(pipeline_.in_flight() + (chunk_ ? chunk_->capacity : 0));
  answer_charge_.Lower(Unsent());
}

void Session::WaitToRead() {
  if (reading_ || closed_ || gone_ || (closing_ && !lingering_)) return;
  const size_t waiting = chunk_ ? end_ - begin_ : tail_.size();
  if (stalled_ && waiting >= (IsStranger() ? kStrangerMax : kAheadMax)) return;
  reading_ = true;
  socket_.async_wait(net::Socket::wait_read, Handler([this](const error_code& error) {
                       reading_ = false;
                       if (closed_) return;
                       error ? Close() : Receive();
                     }));
}

bool Session::MakeRoomToRead() {
  if (!chunk_) {
    chunk_ = server_.chunks().Take();
    begin_ = 0;
    end_ = tail_.size();
    std::memcpy(chunk_->data.get(), tail_.data(), end_);
    tail_ = {};
  }
  if (end_ < chunk_->capacity) return true;
  const size_t size = end_ - begin_;
  const size_t needed = stalled_ ? size + kTailMax : std::max(parser_.needed(), size + 1);
  // Growing as the bytes come: what a length announces costs nothing. By half at least, because behind the argument
  // whose length is known others may follow.
  const size_t room = std::max(std::clamp(needed, size + size / 2, 2 * size), ChunkPool::kBytes);
  if (!request_charge_.Reach(room + pipeline_.in_flight())) return false;
  auto larger = room == ChunkPool::kBytes ? server_.chunks().Take() : std::make_shared<Chunk>(room);
  std::memcpy(larger->data.get(), chunk_->data.get() + begin_, size);
  server_.chunks().GiveBack(std::exchange(chunk_, std::move(larger)));
  begin_ = 0;
  end_ = size;
  return true;
}

void Session::Receive() {
  if (!MakeRoomToRead()) {
    if (pipeline_.in_flight() > 0) return;  // Turn reads on when that is answered
    return Refuse(server_.NoRoom());
  }
  // What a stranger sends ahead is not worth a chunk of the budget.
  const size_t most = IsStranger() ? kTailMax - std::min(kTailMax - 1, end_ - begin_) : SIZE_MAX;
  error_code error;
  const size_t bytes =
      socket_.read_some(buffer(chunk_->data.get() + end_, std::min(chunk_->capacity - end_, most)), error);
  if (error == boost::asio::error::would_block) {
    KeepRest();
    return WaitToRead();
  }
  if (error) {
    KeepRest();
    if (error != boost::asio::error::eof || lingering_) return Close();
    return ClientGone();
  }
  if (lingering_) {
    end_ = begin_;
    KeepRest();
    return WaitToRead();
  }
  end_ += bytes;
  moved_ += bytes;
  if (stalled_) {
    KeepRest();
    return WaitToRead();
  }
  Process();
}

void Session::ClientGone() {
  // It gets the replies to all that it sent. A reserve that waits ends empty: most often the client is gone as a whole.
  gone_ = true;
  if (parked_) server_.context().service.CancelReserve(*parked_);
  FinishIfDone();
}

void Session::Process() {
  stalled_ = false;
  const size_t at_once_max = pipeline_.at_once() + kAtOnceMax;
  size_t blank = 0;
  if (!chunk_ && !MakeRoomToRead()) return Refuse(server_.NoRoom());
  const Bytes of_chunk = ChunkPool::Share(chunk_);
  {
    std::optional<Service::Bundle> bundle;
    while (begin_ < end_) {
      if (!CanBegin() || pipeline_.at_once() + blank >= at_once_max) {
        stalled_ = true;
        break;
      }
      const auto step = parser_.Parse({chunk_->data.get() + begin_, end_ - begin_}, Limits());
      if (step == FrameParser::Step::kMore) break;
      if (step == FrameParser::Step::kHttp) {
        server_.CountDropped();
        LogWarn("{} speaks HTTP to the RESP port: dropped", Peer());
        return Close();
      }
      if (step == FrameParser::Step::kBad) {
        Refuse(parser_.problem());
        break;
      }
      const auto text = parser_.text();
      bytes_ = text ? Bytes(text) : of_chunk;
      if (!parser_.args().empty() && !Begin(parser_.args(), bundle)) {
        stalled_ = true;
        break;
      }
      if (parser_.args().empty()) ++blank;
      pipeline_.Begun(parser_.size());
      if (text) pipeline_.Flush();
      begin_ += parser_.size();
      read_deadline_ = kNoDeadline;  // what is behind it has its own
    }
    pipeline_.Flush();
  }
  bytes_.reset();
  if (closed_) return;
  KeepRest();
  server_.Wake(*this);
}

const Command* Session::Find(std::string_view word) {
  if (last_ == nullptr || !SameWord(word, last_->name)) last_ = FindCommand(word);
  return last_;
}

bool Session::Begin(std::span<const std::string_view> args, std::optional<Service::Bundle>& bundle) {
  const Command* const command = Find(args.front());
  if (command == nullptr || refusing_) {
    if (const auto error = RefusalOf(args.front())) {
      server_.CountErrors(error->code, 1);
      Writer(pipeline_.Now(), protocol_).Fail(*error);
      return true;
    }
  }
  Call call{*command, args.subspan(1), *this};
  const std::string_view topic = call.args.empty() ? std::string_view() : call.args.front();
  if (IsStranger() && command->access != auth::Access::kOpen) {
    call.Fail(CheckCaller(*command, topic).error());
    return true;
  }
  if (call.args.size() < command->args_min || call.args.size() > command->args_max) {
    call.Fail({Code::kInvalidArgument,
               fmt::format("wrong number of arguments, {}; it is used as: {} {}", call.args.size(), command->name,
                           command->syntax),
               {}});
    return true;
  }
  if (const Status allowed = CheckCaller(*command, topic); !allowed) {
    call.Fail(allowed.error());
    return true;
  }
  if (pipeline_.creating() && !pipeline_.Continues(command, topic)) {
    pipeline_.Flush();
    return false;
  }
  if (command->waits && !pipeline_.AwaitAll()) return false;
  if (command->holds) {
    pipeline_.Flush();
    bundle.reset();
  } else if (!bundle) {
    bundle.emplace(server_.context().service, server_.loop());
  }
  command->run(call);
  return true;
}

std::optional<Error> Session::RefusalOf(std::string_view word) {
  // Of a transaction nothing may be done: the client is told that it failed, and would do all of it again.
  if (SameWord(word, "MULTI")) refusing_ = true;
  if (SameWord(word, "EXEC") || SameWord(word, "DISCARD")) refusing_ = false;
  if (FindCommand(word) == nullptr) return UnknownCommand(word);
  if (SameWord(word, "QUIT") || SameWord(word, "RESET")) {
    refusing_ = false;
    return std::nullopt;
  }
  return Error{Code::kUnknownCommand, "not done: its MULTI was refused; pipeline without a transaction", {}};
}

void Session::LimitFrame(size_t size) {
  if (size == 0 || stalled_) {
    read_deadline_ = kNoDeadline;
    moved_ = 0;
  } else if (read_deadline_ == kNoDeadline || moved_ >= kMovedBytes) {
    read_deadline_ = server_.loop().clock().IoNow() + kFrameTime;
    moved_ = 0;
  }
}

void Session::KeepRest() {
  if (!chunk_) return;
  const size_t size = end_ - begin_;
  if (size == 0) parser_.Trim();
  if (!lingering_) LimitFrame(size);
  if (size > kTailMax) {
    const bool charged = request_charge_.Reach(chunk_->capacity + pipeline_.in_flight());
    if (!charged && pipeline_.in_flight() == 0) Refuse(server_.NoRoom());
    return;
  }
  tail_ = std::string(chunk_->data.get() + begin_, size);
  server_.chunks().GiveBack(std::move(chunk_));
  chunk_.reset();
  begin_ = end_ = 0;
  LowerCharges();
}

void Session::Refuse(const Error& error) {
  server_.CountErrors(error.code, 1);
  Writer(pipeline_.Now(), protocol_).Fail(error);
  closing_ = true;
  begin_ = end_;
  server_.Wake(*this);
}

// Reserves that wait.

void Session::Park(ReserveId id, std::string_view topic) {
  if (!pipeline_.holding()) return;  // it was answered at once
  parked_ = id;
  parked_topic_ = topic;
  server_.CountParked(1);
}

void Session::Unpark() {
  if (!parked_) return;
  parked_.reset();
  server_.CountParked(-1);
}

bool Session::Gone() const {
  // Behind bytes that nobody reads no end would be seen.
  pollfd polled{.fd = const_cast<net::Socket&>(socket_).native_handle(), .events = POLLRDHUP, .revents = 0};
  return poll(&polled, 1, 0) > 0;
}

// Replies.

Status Session::MakeRoom(size_t bytes) {
  if (answer_charge_.Reach(Unsent() + bytes)) return {};
  return std::unexpected(server_.NoRoom());
}

void Session::Turn() {
  if (closed_) return;
  if (sent_ > out_.size() / 2) {  // a client that always leaves something unread must not have it grow
    out_.erase(0, sent_);
    sent_ = 0;
  }
  pipeline_.TakeReady(out_);
  Write();
  if (closed_) return;
  if (stalled_ && CanBegin()) Process();
  WaitToRead();
  FinishIfDone();
}

void Session::Write() {
  if (writing_) return;
  while (sent_ < out_.size()) {
    error_code error;
    const size_t bytes = socket_.write_some(buffer(out_.data() + sent_, out_.size() - sent_), error);
    if (error == boost::asio::error::would_block) return WaitToWrite();
    if (error) return Close();
    sent_ += bytes;
    written_ += bytes;
    if (written_ >= kMovedBytes) write_deadline_ = kNoDeadline;
  }
  sent_ = 0;
  write_deadline_ = kNoDeadline;
  out_ = {};
  LowerCharges();
}

void Session::WaitToWrite() {
  if (write_deadline_ == kNoDeadline) {
    write_deadline_ = server_.loop().clock().IoNow() + kWriteTime;
    written_ = 0;
  }
  writing_ = true;
  socket_.async_wait(net::Socket::wait_write, Handler([this](const error_code& error) {
                       writing_ = false;
                       if (closed_) return;
                       error ? Close() : Turn();
                     }));
}

void Session::FinishIfDone() {
  if (closed_ || lingering_ || !(closing_ || gone_)) return;
  const bool more = stalled_ && !closing_;
  if (more || !pipeline_.empty() || sent_ < out_.size()) return;
  if (gone_ || server_.draining()) return Close();
  Linger();
}

void Session::Linger() {
  // Closing with unread bytes would send a reset, which may overtake the last reply.
  error_code ignored;
  socket_.shutdown(net::Socket::shutdown_send, ignored);
  lingering_ = true;
  stalled_ = false;
  read_deadline_ = server_.loop().clock().IoNow() + kLingerTime;
  WaitToRead();
}

bool Session::IsLate(SteadyTime now) const {
  if (now >= write_deadline_ || now >= read_deadline_ || now >= login_deadline_) return true;
  // The server does not wait for a slow reader when it stops.
  return (now >= drain_deadline_ && writing_) || (parked_ && !reading_ && !gone_ && Gone());
}

void Session::TimeOut() {
  const bool only_gone = parked_ && !gone_ && Gone();
  only_gone ? ClientGone() : Close();
}

}  // namespace tocsin::resp
