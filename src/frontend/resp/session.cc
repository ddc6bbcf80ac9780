#include "frontend/resp/session.h"

#include <cstring>

#include "base/log.h"
#include "base/text.h"
#include "frontend/resp/commands/commands.h"
#include "frontend/resp/server.h"
#include "frontend/shared/audit.h"

namespace tocsin::resp {
namespace {

using boost::asio::buffer;
using boost::system::error_code;

constexpr size_t kUnsentMax = 1 << 20;
constexpr size_t kWriteMax = 1 << 20;  // of replies, in one turn
constexpr size_t kSlotsMax = 1024;
constexpr size_t kUnsentStep = 16 << 10;  // in which replies are charged
constexpr size_t kInFlightMax = 4 << 20;  // bytes of commands that are not answered
constexpr size_t kArgsUntimed = 1'024;    // arguments of gathered commands that are begun without a look at the clock
constexpr size_t kTailMax = 16 << 10;
constexpr size_t kShortTail = 2 << 10;  // the same if the budget is full: below Budget::kHeldBytes with all they need
constexpr size_t kShortStep = 512;
constexpr size_t kAheadMax = 64 << 10;           // bytes read after a command that holds
constexpr size_t kUnauthenticatedMax = 2 << 10;  // bytes of a command, of those read ahead, and of replies
constexpr size_t kUnauthenticatedArguments = 64;
constexpr size_t kOptionsMax = 128;  // arguments other than jobs or tokens
constexpr Millis kLogInTime{30'000};
constexpr Millis kDrainTime{2'000};

}  // namespace

Session::Session(Server& server, net::Socket socket, net::ConnectionPass pass, uint64_t id)
    : Connection(server, std::move(socket), std::move(pass)),
      server_(server),
      id_(id),
      tokens_(server.tokens()),
      account_(client_account()),
      request_charge_(server.budget(), net::Charge::For::kRequest),
      pipeline_(*this),
      answer_charge_(server.budget(), net::Charge::For::kAnswer) {}

void Session::Start() {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  SetGrant(GrantOfConnection());
  WaitToRead();
}

void Session::OnClose() {
  if (parked_) {
    const ReserveId parked = *parked_;
    Unpark();
    server_.context().service.CancelReserve(parked);
  }
  for (const Leases& leases : pipeline_.TakeUnsent()) {
    server_.context().service.Release(server_.loop(), leases);
  }
  if (chunk_) server_.chunks().GiveBack(std::move(chunk_));
}

void Session::Drain() {
  closing_ = true;
  drain_deadline_.Set(After(kDrainTime));
  FinishIfDone();
}

Status Session::LogIn(std::string_view token) {
  if (tokens_ == nullptr) return {};
  const auth::Grant* const grant = tokens_->Find(token);
  if (grant == nullptr) {
    Error refusal{Code::kUnauthenticated, "the token is not known: it is mistyped, or revoked", {}};
    shared::LogRefusedLogin(*this, "resp", refusal, server_.loop().clock().IoNow());
    return std::unexpected(std::move(refusal));
  }
  token_ = token;
  SetGrant(grant);
  return {};
}

void Session::SetGrant(const auth::Grant* grant) {
  grant_ = grant;
  account_ = grant == nullptr ? client_account() : grant->transfer_bytes;
  LimitLogIn();
}

const auth::Grant* Session::GrantOfConnection() const {
  if (tokens_ == nullptr) return nullptr;
  return token_.empty() ? tokens_->FindCertificate(certificate_subject()) : tokens_->Find(token_);
}

void Session::LimitLogIn() {
  if (!IsUnauthenticated()) return login_deadline_.Clear();
  if (!login_deadline_.IsSet()) login_deadline_.Set(After(kLogInTime));
}

Status Session::CheckCaller(const Command& command, std::string_view topic) const {
  if (tokens_ == nullptr || command.access == auth::Access::kOpen) return {};
  if (grant_ == nullptr && !certificate_subject().empty()) {
    return Fail(Code::kUnauthenticated, "{}", auth::UnknownCertificate(certificate_subject()));
  }
  if (grant_ == nullptr) {
    return Fail(Code::kUnauthenticated, "this server needs a token: AUTH TOKEN (tocsin token create makes one)");
  }
  return auth::CheckGrant(*grant_, command.access, topic);
}

void Session::TokensChanged() {
  tokens_ = server_.tokens();
  SetGrant(GrantOfConnection());
  if (IsUnauthenticated() && !token_.empty()) {
    token_.clear();
    SetGrant(GrantOfConnection());
  }
  if (parked_ && !CheckCaller(*FindCommand("JOB.RESERVE"), parked_topic_)) {
    server_.context().service.CancelReserve(*parked_);
  }
}

void Session::Reset() {
  pipeline_.Flush();  // replies to earlier commands keep their protocol
  protocol_ = Protocol::kResp2;
  name_.clear();
  token_.clear();
  SetGrant(GrantOfConnection());
}

Status Session::SetName(std::string_view name) {
  const bool plain = std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f; });
  if (name.size() > kHolderBytesMax || !plain) {
    return FailField(Code::kInvalidArgument, "name", "the name takes up to {} visible bytes, no spaces",
                     kHolderBytesMax);
  }
  name_ = name;
  return {};
}

FrameLimits Session::Limits() const {
  if (IsUnauthenticated()) return {kUnauthenticatedMax, kUnauthenticatedArguments};
  return {server_.options().frame_bytes_max, server_.context().service.limits().batch + kOptionsMax};
}

// Reading.

bool Session::CanBegin() {
  if (closing_ || pipeline_.holding() || pipeline_.size() > kSlotsMax) return false;
  const size_t unsent = Unsent();
  const size_t in_flight = pipeline_.in_flight();
  if (unsent > (IsUnauthenticated() ? kUnauthenticatedMax : kUnsentMax) || in_flight > kInFlightMax) return false;
  // The budget never refuses small charges. A larger one may have to wait for room, and the client with it.
  const size_t steps = unsent + kUnsentStep - unsent % kUnsentStep;
  return (unsent <= net::Budget::kHeldBytes || answer_charge_.Hold(steps, account_)) &&
         (in_flight <= net::Budget::kSmallBytes || request_charge_.Reach(in_flight, account_));
}

void Session::LowerCharges() {
  request_charge_.Lower(pipeline_.in_flight() + Rest());
  // A command that holds may have made room for its answer.
  if (parked_ || !pipeline_.holding()) answer_charge_.Lower(Unsent());
}

size_t Session::Rest() const {
  const size_t rest = parser_.memory() + (chunk_ ? chunk_->capacity : tail_.size());
  return rest > net::Budget::kHeldBytes ? rest : 0;
}

bool Session::IsShortOfRoom() const { return server_.budget().IsFull(ChunkPool::kBytes); }

bool Session::HoldRest() {
  const size_t rest = Rest();
  if (rest == 0 || request_charge_.Hold(rest + pipeline_.in_flight(), account_)) return true;
  return stalled_ && pipeline_.in_flight() > 0;  // that is answered soon, and does not depend on the client
}

void Session::WaitToRead() {
  if (reading_ || readable_ || !open() || half_closed_ || closing_) return;
  const size_t waiting = chunk_ ? end_ - begin_ : tail_.size();
  if (stalled_ && waiting >= (IsUnauthenticated() ? kUnauthenticatedMax : kAheadMax)) return;
  if (stalled_ && waiting >= kShortTail && IsShortOfRoom()) return;
  reading_ = true;
  AwaitReadable([this](const error_code& error) {
    reading_ = false;
    if (!open() || lingering()) return;
    if (error) return Close();
    readable_ = true;
    server_.Serve(*this);
  });
}

bool Session::MakeRoomToRead() {
  if (!chunk_) {
    chunk_ = server_.chunks().Take();
    begin_ = 0;
    end_ = tail_.size();
    std::memcpy(chunk_->data.get(), tail_.data(), end_);
    net::Free(tail_);
  }
  if (end_ < chunk_->capacity) return true;
  const size_t size = end_ - begin_;
  const size_t needed = stalled_ ? size + kTailMax : std::max(parser_.needed(), size + 1);
  // Grow as the bytes arrive: an announced length costs nothing. Grow by half at least, because more arguments may
  // follow the one whose length is known.
  const size_t room = std::max(std::clamp(needed, size + size / 2, 2 * size), ChunkPool::kBytes);
  if (!request_charge_.Reach(room + pipeline_.in_flight(), account_)) return false;
  if (begin_ == 0 && chunk_->Grow(room)) return true;
  auto larger = room == ChunkPool::kBytes ? server_.chunks().Take() : std::make_shared<Chunk>(room);
  std::memcpy(larger->data.get(), chunk_->data.get() + begin_, size);
  server_.chunks().GiveBack(std::exchange(chunk_, std::move(larger)));
  begin_ = 0;
  end_ = size;
  return true;
}

size_t Session::ReadMax() const {
  const size_t size = end_ - begin_;
  // Unauthenticated connections get nothing of the budget.
  if (IsUnauthenticated()) return std::max(kUnauthenticatedMax, size + 1) - size;
  if (!IsShortOfRoom()) return SIZE_MAX;
  // The rest waits in the socket, except for that of a command that is incomplete.
  const size_t needed = stalled_ ? kShortTail : std::max(kShortTail, parser_.needed());
  return std::max(needed, size + kShortStep) - size;
}

void Session::Receive() {
  if (!MakeRoomToRead()) {
    if (pipeline_.in_flight() > 0) return;  // Turn continues to read when that is answered
    return Refuse(server_.NoRoom());
  }
  error_code error;
  const size_t bytes = ReadSome(buffer(chunk_->data.get() + end_, std::min(chunk_->capacity - end_, ReadMax())), error);
  if (error == boost::asio::error::would_block) {
    KeepRest();
    return WaitToRead();
  }
  if (error) {
    KeepRest();
    return error == boost::asio::error::eof ? OnHalfClosed() : Close();
  }
  end_ += bytes;
  read_deadline_.Moved(bytes);
  if (stalled_) {
    KeepRest();
    return WaitToRead();
  }
  Process();
}

bool Session::ReceiveMore() {
  if (IsUnauthenticated() || parser_.needed() > net::Budget::kSmallBytes || end_ == chunk_->capacity) return false;
  error_code error;  // the next read finds it again
  const size_t most = std::min(chunk_->capacity - end_, ReadMax());
  const size_t bytes = ReadSome(buffer(chunk_->data.get() + end_, most), error);
  end_ += bytes;
  read_deadline_.Moved(bytes);
  return bytes > 0;
}

void Session::OnHalfClosed() {
  // The client gets the replies to everything that it sent. A reserve that waits ends empty: most often the whole
  // client is gone.
  half_closed_ = true;
  if (parked_) server_.context().service.CancelReserve(*parked_);
  FinishIfDone();
}

void Session::Process() {
  stalled_ = false;
  size_t args = 0;  // of the commands since the last look at the clock
  if (!chunk_ && !MakeRoomToRead()) return Refuse(server_.NoRoom());
  const Bytes of_chunk = ChunkPool::Share(chunk_);
  {
    std::optional<Service::Bundle> bundle;
    while (begin_ < end_) {
      const bool timed = args > 0 && (!pipeline_.gathering() || args >= kArgsUntimed);
      if (!CanBegin() || (timed && server_.TurnIsOver())) {
        stalled_ = true;
        break;
      }
      if (timed) args = 0;
      const auto step = parser_.Parse({chunk_->data.get() + begin_, end_ - begin_}, Limits());
      if (step == FrameParser::Step::kMore) {
        if (IsShortOfRoom() && ReceiveMore()) continue;
        break;
      }
      if (step == FrameParser::Step::kHttp) {
        server_.CountDropped();
        LogWarn("{} speaks HTTP to the RESP port: dropped", Peer());
        return Close();
      }
      if (step == FrameParser::Step::kTls) {
        shared::LogTlsClient(*this, "resp", server_.loop().clock().IoNow());
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
      args += std::max<size_t>(1, parser_.args().size());
      pipeline_.Begun(parser_.size());
      if (text || pipeline_.full()) pipeline_.Flush();
      begin_ += parser_.size();
      read_deadline_.Clear();  // the next command has its own
    }
    pipeline_.Flush();
  }
  bytes_.reset();
  if (!open()) return;
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
    if (const auto error = RefusalOf(args.front())) return FailNow(*error);
  }
  Call call{*command, args.subspan(1), *this};
  const std::string_view topic = call.args.empty() ? std::string_view() : call.args.front();
  if (IsUnauthenticated() && command->access != auth::Access::kOpen) {
    return FailNow(CheckCaller(*command, topic).error());
  }
  if (call.args.size() < command->args_min || call.args.size() > command->args_max) {
    return FailNow({Code::kInvalidArgument,
                    fmt::format("wrong number of arguments, {}; it is used as: {} {}", call.args.size(), command->name,
                                command->syntax),
                    {}});
  }
  if (const Status allowed = CheckCaller(*command, topic); !allowed) {
    shared::AuditRefusal(command->verb, topic, shared::CallerOf(grant_, *this, "resp"), allowed.error(),
                         server_.loop().clock().IoNow());
    return FailNow(allowed.error());
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
  const Status status = command->run(call);
  return status ? true : FailNow(status.error());
}

bool Session::FailNow(const Error& error) {
  server_.CountErrors(error.code, 1);
  Writer(pipeline_.Now(), protocol_).Fail(error);
  return true;
}

std::optional<Error> Session::RefusalOf(std::string_view word) {
  // Run nothing of a transaction: the client is told that it failed, and may repeat all of it.
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
  if (size == 0 || stalled_) return read_deadline_.Clear();
  read_deadline_.Extend(After(net::Deadline::kMovedTime), request_charge_.bytes());
}

void Session::KeepRest() {
  if (!chunk_) return;
  const size_t size = end_ - begin_;
  if (size == 0) parser_.Trim();
  LimitFrame(size);
  if (size <= kTailMax) {
    std::string tail(chunk_->data.get() + begin_, size);
    DropRest();
    tail_ = std::move(tail);
  }
  LimitRest();
  LowerCharges();
}

void Session::LimitRest() {
  if (HoldRest()) return;
  if (!closing_) Refuse(server_.NoRoom());
  DropRest();
}

void Session::DropRest() {
  net::Free(tail_);
  if (chunk_) server_.chunks().GiveBack(std::exchange(chunk_, nullptr));
  begin_ = end_ = 0;
}

void Session::Refuse(const Error& error) {
  FailNow(error);
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

// Replies.

Status Session::MakeRoom(size_t bytes) {
  if (answer_charge_.Reach(Unsent() + bytes, account_)) return {};
  return std::unexpected(server_.NoRoom());
}

Status Session::MakeRoomForWhole(size_t bytes) {
  if (answer_charge_.ReachWhole(Unsent() + bytes, account_)) return {};
  return std::unexpected(server_.NoRoom());
}

shared::AnswerRoom Session::NewRoom() { return {server_.budget(), account_}; }

void Session::TakeRoom(shared::AnswerRoom& room) {
  const size_t bytes = room.charge().bytes();
  answer_charge_.Absorb(room.charge());
  answer_charge_.Lower(Unsent() + bytes);
}

std::shared_ptr<shared::AnswerRoom> Session::NewSharedRoom() {
  return std::make_shared<shared::AnswerRoom>(server_.budget(), account_);
}

void Session::TakeRoom(shared::AnswerRoom& room, size_t bytes) {
  answer_charge_.Absorb(room.charge());
  answer_charge_.Lower(Unsent() + bytes);
  answer_charge_.Force(Unsent() + bytes);  // nothing was charged yet for a small one
}

void Session::Turn() {
  if (!open() || lingering()) return;
  if (sent_ > out_.size() / 2) {  // do not let it grow if the client always leaves something unread
    out_.erase(0, sent_);
    sent_ = 0;
  }
  do {
    pipeline_.TakeReady(out_);
    Write();
    if (!open()) return;
  } while (out_.empty() && pipeline_.ready());
  const bool stalled = stalled_;
  if (std::exchange(readable_, false)) {
    Receive();
    if (!stalled || !open()) return;
  }
  if (stalled && CanBegin()) Process();
  if (open()) LimitRest();
  WaitToRead();
  FinishIfDone();
}

void Session::Write() {
  if (writing_) {
    if (!HoldReplies()) Cut();
    return;
  }
  for (size_t written = 0; sent_ < out_.size();) {
    if (written >= kWriteMax) return WaitToWrite();
    error_code error;
    const size_t most = std::min(out_.size() - sent_, kWriteMax);
    const size_t bytes = WriteSome(buffer(out_.data() + sent_, most), error);
    if (error == boost::asio::error::would_block) return WaitToWrite();
    if (error) return Close();
    written += bytes;
    sent_ += bytes;
    pipeline_.Sent(bytes);
    write_deadline_.Moved(bytes);
  }
  sent_ = 0;
  write_deadline_.Clear();
  net::Free(out_);
  LowerCharges();
}

bool Session::HoldReplies() {
  const size_t left = out_.size() - sent_;
  if (left <= net::Budget::kSmallBytes && out_.capacity() > left) {
    out_.substr(sent_).swap(out_);
    sent_ = 0;
  }
  const size_t unsent = Unsent();
  return (unsent <= net::Budget::kHeldBytes || answer_charge_.Hold(unsent, account_)) && HoldRest();
}

void Session::WaitToWrite() {
  if (!HoldReplies()) return Cut();
  write_deadline_.Extend(After(net::Deadline::kMovedTime), answer_charge_.bytes());
  writing_ = true;
  AwaitWritable([this](const error_code& error) {
    writing_ = false;
    if (!open()) return;
    error ? Close() : server_.Serve(*this);
  });
}

void Session::FinishIfDone() {
  if (!open() || lingering() || !(closing_ || half_closed_)) return;
  const bool more = stalled_ && !closing_;
  if (more || !pipeline_.empty() || sent_ < out_.size()) return;
  if (half_closed_ || server_.draining()) return Close();
  DropRest();
  parser_.Trim();
  LowerCharges();
  read_deadline_.Clear();
  Linger();
}

bool Session::IsLate(net::Deadline::TimePoint now) const {
  if (TransferIsLate(write_deadline_, now, answer_charge_) || login_deadline_.HasPassed(now) ||
      TransferIsLate(read_deadline_, now, request_charge_)) {
    return true;
  }
  // A server that stops does not wait for slow readers. While nothing is read, poll for the peer's end.
  return (drain_deadline_.HasPassed(now) && writing_) || (parked_ && !reading_ && !half_closed_ && PeerHasClosed());
}

void Session::TimeOut() {
  const bool only_half_closed = parked_ && !half_closed_ && PeerHasClosed();
  only_half_closed ? OnHalfClosed() : Close();
}

}  // namespace tocsin::resp
