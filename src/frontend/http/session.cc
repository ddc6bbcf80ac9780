#include "frontend/http/session.h"

#include <algorithm>
#include <cstring>

#include <netinet/tcp.h>
#include <sys/socket.h>

#include "core/validate.h"
#include "frontend/http/header_check.h"
#include "frontend/http/login.h"
#include "frontend/http/server.h"
#include "frontend/http/step_parser.h"
#include "frontend/http/ui.h"
#include "frontend/shared/audit.h"

namespace tocsin::http {
namespace {

namespace beast = boost::beast;
using boost::asio::buffer;
using boost::system::error_code;

constexpr uint32_t kHeaderMax = 16 << 10;
constexpr size_t kWatchChunk = 512;          // of bytes that are read at once while a reserve waits
constexpr size_t kFieldBytes = 96;           // of memory for a field of a header, without its text
constexpr size_t kParsedHereMax = 64 << 10;  // bytes of a body: larger ones would hold up due jobs
constexpr size_t kAheadMax = 16 << 10;       // pipelined after a reserve that waits
constexpr size_t kBareBodyMax = 4 << 10;     // for calls that take no body
constexpr Millis kHeaderTime{10'000};
constexpr Millis kIdleTime{60'000};
constexpr Millis kDrainTime{5'000};  // to read the last answer; the server stops after ten
constexpr Millis kPeerTime{1'000};   // how often to look whether the client of a parked reserve has closed
constexpr std::string_view kTlsRecord = "\x16\x03";  // how a TLS client begins
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view View(const beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

/// All that can be done with many jobs before the shard has them. On any thread.
Result<SubmitRequest> PrepareSubmit(const Context& context, std::shared_ptr<Document> document) {
  const Limits& limits = context.service.limits();
  TOCSIN_ASSIGN(SubmitRequest request, DecodeSubmit({}, std::move(document), limits.batch));
  if (Status valid = Validate(request, limits, context.clock.Now()); !valid) {
    return std::unexpected(OnTheWire(std::move(valid).error()));
  }
  request.checked = true;
  return request;
}

}  // namespace

Session::Session(Server& server, net::Socket socket, net::ConnectionPass pass)
    : Connection(server, std::move(socket), std::move(pass)),
      server_(server),
      request_charge_(server.budget(), net::Charge::For::kRequest),
      account_(client_account()),
      answer_charge_(server.budget(), net::Charge::For::kAnswer) {}

void Session::Enter(Phase phase, Millis time) {
  phase_ = phase;
  deadline_.Set(After(time));
}

void Session::Moved(size_t bytes) {
  deadline_.Moved(bytes);
  const net::Charge& charge = phase_ == Phase::kWriting ? answer_charge_ : request_charge_;
  deadline_.Extend(After(net::Deadline::kMovedTime), charge.bytes());
}

bool Session::IsLate(net::Deadline::TimePoint now) const {
  if (phase_ == Phase::kBody) return TransferIsLate(deadline_, now, request_charge_);
  if (phase_ == Phase::kWriting) {
    return drain_deadline_.HasPassed(now) || TransferIsLate(deadline_, now, answer_charge_);
  }
  return deadline_.HasPassed(now);
}

void Session::TimeOut() {
  if (phase_ == Phase::kHeader) {
    return Refuse({Code::kTimedOut,
                   fmt::format("the request header did not arrive within {} s", kHeaderTime.count() / 1000),
                   {}});
  }
  if (phase_ == Phase::kBody) {
    return Refuse({Code::kTimedOut,
                   fmt::format("the rest of the body, or the next {} bytes of it, did not arrive within {} s (while "
                               "memory is short: the next 1/{} of a large one within {} s)",
                               net::Deadline::kMovedBytes, net::Deadline::kMovedTime.count() / 1000,
                               net::Deadline::kHurriedSteps, net::Deadline::kHurriedTime.count() / 1000),
                   {}});
  }
  if (phase_ == Phase::kHandling) return CloseIfPeerHas();
  if (Streams()) return LookAtStream();
  Close();
}

void Session::OnClose() {
  phase_ = Phase::kEnded;
  if (const auto parked = Unpark()) server_.context().service.CancelReserve(*parked);
  if (parsing_) parsing_->unwanted = true;
  ReleaseLeases();
  more_ = nullptr;
  stream_ = nullptr;
}

void Session::Drain() {
  if (phase_ < Phase::kHandling) return Close();
  if (Streams()) return OnPiece({.last = true});
  drain_deadline_.Set(After(kDrainTime));
}

void Session::Start() {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  Next();
}

void Session::Next() {
  scanned_ = 0;
  head_ = false;
  route_ = server_.router().routes().size();
  tokens_.reset();
  if (server_.draining()) return Close();
  Enter(Phase::kIdle, kIdleTime);
  Advance();
}

void Session::Read() {
  if (reading_) return;
  if (!HoldRequest()) return Refuse(server_.NoRoom());
  WaitToRead();
}

bool Session::HoldRequest() {
  if (buffer_.capacity() > 2 * buffer_.size()) buffer_.shrink_to_fit();
  size_t held = buffer_.capacity() + header_bytes_;
  if (held <= net::Budget::kHeldBytes) held = 0;  // most are not worth counting
  // TakeChunks reserves room for the largest body. Only what has arrived takes memory.
  size_t body = body_.size() > kParsedHereMax ? body_.size() : body_.capacity();
  if (body_.empty()) body = 0;
  return request_charge_.Hold(held + std::max(body, body_bytes_), account_);
}

void Session::WaitToRead() {
  reading_ = true;
  AwaitReadable([this](const error_code& error) { OnReadable(error); });
}

void Session::OnReadable(error_code error) {
  reading_ = false;
  if (phase_ >= Phase::kHandling && !parked_) return;  // the next request waits in the socket
  const auto room = server_.scratch().first(parked_ ? kWatchChunk : Server::kScratchBytes);
  const size_t count = error ? 0 : ReadSome(buffer(room.data(), room.size()), error);
  if (error == boost::asio::error::would_block) return parked_ ? Watch() : Read();
  if (error) return Close();
  std::string_view bytes(room.data(), count);
  if (phase_ == Phase::kBody) Moved(count);
  if (phase_ == Phase::kBody && !chunks_) bytes.remove_prefix(AppendToBody(bytes));
  if (!bytes.empty()) std::memcpy(buffer_.prepare(bytes.size()).data(), bytes.data(), bytes.size());
  buffer_.commit(bytes.size());
  parked_ ? Watch() : Advance();
}

void Session::Advance() {
  // Some clients send an empty line after a body; it is no request (RFC 9112, 2.2).
  while (phase_ == Phase::kIdle && View(buffer_).starts_with("\r\n")) buffer_.consume(2);
  const bool half_a_line = View(buffer_) == "\r";
  if (phase_ == Phase::kIdle && buffer_.size() > 0 && !half_a_line) Enter(Phase::kHeader, kHeaderTime);
  if (phase_ == Phase::kHeader) TakeHeader();
  if (phase_ == Phase::kBody) TakeBody();
  if (phase_ < Phase::kHandling) Read();
}

void Session::TakeHeader() {
  const std::string_view bytes = View(buffer_);
  if (bytes.starts_with('*')) {  // a Redis client: it would wait for an answer until the header times out
    return Refuse({Code::kInvalidArgument, "this is the HTTP port; Redis clients use the one of resp.listen", {}});
  }
  if (bytes.starts_with(kTlsRecord)) {  // it would not understand an answer
    shared::LogTlsClient(*this, "http", server_.loop().clock().IoNow());
    return Close();
  }
  const size_t end = bytes.find("\r\n\r\n", scanned_);
  if (std::min(end, bytes.size()) + 4 > kHeaderMax) {
    return Refuse({Code::kTooLarge, fmt::format("the request header is over {} bytes", kHeaderMax), {}});
  }
  if (end == std::string_view::npos) {
    // Such a client has perhaps sent all of it, and waits for an answer.
    if (HasBareLf(bytes, scanned_)) return Refuse({Code::kInvalidArgument, std::string(kNoCrLf), {}});
    scanned_ = bytes.size() < 3 ? 0 : bytes.size() - 3;
    return;
  }
  const Status status = CheckHeader(bytes.substr(0, end + 2), server_.pages(), server_.options().allowed_hosts);
  if (!status) return Refuse(status.error());

  request_.emplace();
  request_->header_limit(kHeaderMax);
  request_->skip(true);  // the body is not for this parser
  error_code error;
  const size_t used = request_->put(buffer(bytes.data(), end + 4), error);
  if (error) return Refuse({Code::kInvalidArgument, fmt::format("malformed request: {}", error.message()), {}});
  header_bytes_ = used + kFieldBytes * static_cast<size_t>(std::ranges::count(bytes.substr(0, used), '\n'));
  buffer_.consume(used);
  head_ = request_->get().method() == Verb::head;
  refusal_ = FindRoute();
  ExpectBody();
}

void Session::ExpectBody() {
  if (request_->chunked()) chunks_.emplace();
  const uint64_t length = request_->content_length().value_or(0);
  body_bytes_max_ = server_.options().body_bytes_max;
  if (length > body_bytes_max_) return Refuse(BodyTooLarge());
  body_bytes_ = length;
  // A refused request's body is not read, unless it is here already: then the connection can go on.
  const bool more = chunks_ || body_bytes_ > buffer_.size();
  if (refusal_ && more) return Refuse(*std::exchange(refusal_, std::nullopt));
  if (!refusal_ && match_.route->method == Verb::get) {
    body_bytes_max_ = std::min(body_bytes_max_, kBareBodyMax);
    if (body_bytes_ > body_bytes_max_) return Refuse(BodyTooLarge());
  }
  // A whole body is answered soon. A reserve that waits keeps its header.
  const size_t header = header_bytes_ > net::Budget::kHeldBytes ? header_bytes_ : 0;
  const bool room = request_charge_.Hold(more ? header + body_bytes_ : header, account_) &&
                    request_charge_.Reach(header + body_bytes_, account_);
  if (!room) return Refuse(server_.NoRoom());
  Enter(Phase::kBody, net::Deadline::kMovedTime);
  if (BodyIsComplete() || buffer_.size() > 0) return;
  AckNow();
  const auto& message = request_->get();
  if (message.version() >= 11 && message.count(beast::http::field::expect) > 0) Continue();
}

Error Session::BodyTooLarge() const {
  const std::string_view what = body_bytes_max_ < server_.options().body_bytes_max
                                    ? "the body of a call that takes none is over"
                                    : "the body is over limits.body_size,";
  return {Code::kTooLarge, fmt::format("{} {} bytes", what, body_bytes_max_), {}};
}

void Session::AckNow() {
  // Many clients send header and body separately, without TCP_NODELAY: their body waits for the acknowledgement of the
  // header, which the kernel would delay by 40 ms.
  const int on = 1;
  setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

void Session::TakeBody() {
  if (chunks_) {
    TakeChunks();
  } else if (buffer_.size() > 0) {
    buffer_.consume(AppendToBody(View(buffer_)));
  }
  if (phase_ == Phase::kBody && BodyIsComplete()) Dispatch();
}

size_t Session::AppendToBody(std::string_view bytes) {
  body_.reserve(body_bytes_);
  bytes = bytes.substr(0, body_bytes_ - body_.size());
  body_.append(bytes);
  return bytes.size();
}

void Session::TakeChunks() {
  std::string_view bytes = View(buffer_);
  // Otherwise it would be copied each time that it doubles: megabytes in a turn.
  if (body_.size() > kParsedHereMax) body_.reserve(body_bytes_max_);
  const auto step = chunks_->Decode(bytes, body_, body_bytes_max_);
  buffer_.consume(buffer_.size() - bytes.size());
  if (step == net::ChunkedDecoder::Step::kDone) {
    chunks_.reset();
    if (!request_charge_.Reach(body_.size(), account_)) Refuse(server_.NoRoom());
    return;
  }
  if (step == net::ChunkedDecoder::Step::kBodyTooLarge) return Refuse(BodyTooLarge());
  if (step == net::ChunkedDecoder::Step::kBad) return Refuse(Error(chunks_->problem()));
}

bool Session::BodyIsComplete() const { return !chunks_ && body_.size() >= body_bytes_; }

void Session::Continue() {
  // These few bytes fit into the socket's buffer, because the client waits for them before it sends more.
  error_code error;
  WriteSome(buffer(kContinue), error);
  if (error) Close();
}

void Session::Dispatch() {
  // What is pipelined behind it stays until it is answered.
  const bool ahead = buffer_.size() > net::Budget::kHeldBytes;
  if (ahead && !request_charge_.Hold(request_charge_.bytes() + buffer_.capacity(), account_)) {
    return Refuse(server_.NoRoom());
  }
  phase_ = Phase::kHandling;
  deadline_.Clear();
  began_ = server_.loop().clock().IoNow();
  keep_alive_ = request_->get().keep_alive();
  server_.Serve(std::static_pointer_cast<Session>(shared_from_this()));
}

void Session::Run() {
  if (!open()) return;
  if (!refusal_ && tokens_ != server_.tokens()) {  // they changed while the body arrived
    if (const Status allowed = CheckCaller(); !allowed) refusal_ = ErrorResponse(allowed.error());
  }
  // Some clients send an empty object with every call.
  if (!refusal_ && match_.route->method == Verb::get && !body_.empty() && body_ != "{}") {
    refusal_ = ErrorResponse({Code::kInvalidArgument, "this call takes no body", {}});
  }
  if (refusal_) return Send(*std::exchange(refusal_, std::nullopt));
  const bool large = match_.route->verb != nullptr && body_.size() > kParsedHereMax;
  large ? ParseElsewhere() : Handle(nullptr);
}

BodyLimits Session::body_limits() { return {.budget = &server_.budget(), .account = account_}; }

void Session::ParseElsewhere() {
  auto parsed = parsing_ = std::make_shared<ParsedBody>();
  const bool submits = match_.route->verb->id == api::VerbId::kSubmitJobs;
  const Limits& limits = server_.context().service.limits();
  BodyLimits checked = body_limits();
  checked.batch = limits.batch;
  checked.payload_bytes = static_cast<size_t>(limits.payload_bytes);
  auto parser = std::make_unique<StepParser>(body_, checked);
  auto step = [parsed, submits, &context = server_.context(), parser = std::move(parser)]() mutable {
    try {
      if (!parsed->unwanted && !parser->Step()) return false;
      if (!parsed->unwanted) parsed->document = parser->Take();
      parser.reset();
      if (submits && parsed->document && *parsed->document) parsed->submit = PrepareSubmit(context, *parsed->document);
    } catch (...) {
      parsed->failure = std::current_exception();
    }
    return true;
  };
  auto handle = [this, parsed](const Status&) {
    parsing_ = nullptr;
    if (parsed->failure) std::rethrow_exception(parsed->failure);
    if (parsed->document) document_ = *parsed->document;
    open() ? Handle(parsed) : FreeDocument();
  };
  // Handler keeps the session, and so the body.
  server_.helper().RunSteps(server_.loop(), std::move(step), Handler(std::move(handle)));
}

void Session::FreeDocument() {
  if (!document_) return;
  // On the helper's thread: to give tens of megabytes back to the system takes milliseconds. Before the steps of other
  // bodies, which need the memory. In a later turn: whoever answers the request may still have it.
  server_.loop().Post(Handler([this, document = std::exchange(document_, nullptr)]() mutable {
    auto free = [document = std::move(document)]() mutable { document = nullptr; };
    server_.helper().RunFirst(server_.loop(), std::move(free), [](const Status&) {});
  }));
}

void Session::Handle(std::shared_ptr<ParsedBody> parsed) {
  Call call{.verb = match_.route->verb,
            .context = server_.context(),
            .loop = server_.loop(),
            .parser = server_.parser(),
            .params = std::move(match_.params),
            .query = std::move(match_.query),
            .body = body_,
            .parsed = std::move(parsed),
            .grant = grant_,
            .answer = Answer(std::static_pointer_cast<Session>(shared_from_this())),
            .session = *this};
  match_.route->handler(call);
  net::Free(body_);
}

std::optional<Response> Session::FindRoute() {
  const auto& message = request_->get();
  const std::string_view target = PathOf({message.target().data(), message.target().size()});
  std::string allow;
  auto match = server_.router().Find(head_ ? Verb::get : message.method(), target, &allow);
  if (!match) {
    Response refusal = ErrorResponse(match.error());
    refusal.allow = std::move(allow);
    if (IsUiPath(target)) refusal.fields = kUiFields;
    return refusal;
  }
  match_ = *std::move(match);
  route_ = static_cast<size_t>(match_.route - server_.router().routes().data());
  if (const Status allowed = CheckCaller(); !allowed) return ErrorResponse(allowed.error());
  return std::nullopt;
}

Credentials Session::Shown() const {
  std::string authorization(FieldOf(beast::http::field::authorization));
  if (authorization.empty()) {
    authorization = BearerInCookie(FieldOf(beast::http::field::cookie), FieldOf(beast::http::field::host));
  }
  return {.authorization = std::move(authorization), .certificate = certificate_subject()};
}

Status Session::CheckCaller() {
  tokens_ = server_.tokens();
  const std::string_view topic = match_.params.empty() ? std::string_view() : match_.params[0];
  const Credentials shown = tokens_ == nullptr ? Credentials() : Shown();
  const auto grant = CheckAccess(tokens_.get(), match_.route->access, shown, topic);
  if (!grant) {
    const IoTime now = server_.loop().clock().IoNow();
    if (grant.error().code == Code::kForbidden) {
      shared::AuditRefusal(match_.route->verb, topic, shared::CallerOf(GrantOf(*tokens_, shown), *this, "http"),
                           grant.error(), now);
    } else if (!shown.authorization.empty() || match_.route->access != Access::kKnown) {
      // Not for a browser that only asks who it is.
      shared::LogRefusedLogin(*this, "http", grant.error(), now);
    }
    return std::unexpected(grant.error());
  }
  grant_ = *grant;
  account_ = grant_ != nullptr ? grant_->transfer_bytes : client_account();
  return {};
}

void Session::TokensChanged() {
  // The handler has taken the parameters, so find the route again.
  if (stream_ && !stream_->StillAllowed(server_.tokens().get())) return Close();
  if (parked_ && FindRoute()) server_.context().service.CancelReserve(*parked_);
}

void Session::Park(ReserveId id) {
  if (phase_ != Phase::kHandling) return;  // it was answered at once
  parked_ = id;
  server_.CountParked(1);
  net::Free(body_);
  body_bytes_ = 0;
  request_charge_.Lower(header_bytes_ > net::Budget::kHeldBytes ? header_bytes_ : 0);
  HoldRequest() ? Watch() : Cut();
}

std::optional<ReserveId> Session::Unpark() {
  if (parked_) server_.CountParked(-1);
  return std::exchange(parked_, std::nullopt);
}

void Session::Watch() {
  if (reading_) return;
  // If we stop reading we cannot see the peer close, so poll for that.
  if (buffer_.size() >= kAheadMax || !HoldRequest()) return deadline_.Set(After(kPeerTime));
  WaitToRead();
}

void Session::CloseIfPeerHas() {
  if (parked_ && PeerHasClosed()) return Close();
  deadline_.Set(After(kPeerTime));
}

void Session::DropRequest() {
  request_.reset();
  chunks_.reset();
  header_bytes_ = 0;
  net::Free(body_);
  body_bytes_ = 0;
  request_charge_.Clear();
  FreeDocument();
}

void Session::Refuse(Response refusal) {
  DropRequest();
  keep_alive_ = false;
  unread_ = true;
  began_ = server_.loop().clock().IoNow();
  Send(std::move(refusal));
}

}  // namespace tocsin::http
