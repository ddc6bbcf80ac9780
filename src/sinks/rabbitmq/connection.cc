#include "sinks/rabbitmq/connection.h"

#include <algorithm>
#include <utility>

#include "sinks/rabbitmq/publisher.h"

namespace tocsin::rabbitmq {
namespace {

using boost::system::error_code;

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kKeptBytes = 1 << 20;  // capacity that an empty buffer keeps
constexpr uint32_t kFrameMax = 128 << 10;
constexpr Millis kCloseWithin{500};

/// The smaller one; 0 means no limit.
template <class T>
T Agree(T theirs, T ours) {
  return theirs == 0 ? ours : std::min(theirs, ours);
}

amqp_table_entry_t Flag(std::string_view name) {
  return {.key = BytesOf(name), .value = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value = {.boolean = 1}}};
}

}  // namespace

Connection::Connection(boost::asio::io_context& io, boost::asio::ssl::context* tls, const Options& options,
                       Publisher& publisher)
    : options_(options), publisher_(publisher), stream_(io, tls), buffer_(kReadBytes) {}

void Connection::Start() {
  deadline_ = Now() + options_.connect_timeout;
  stream_.Connect(options_.host, options_.port, true,
                  [self = shared_from_this()](const error_code& error) { self->OnConnected(error); });
}

void Connection::OnConnected(const error_code& error) {
  if (step_ == Step::kClosed) return;
  if (error) return Fail(error.message());
  step_ = Step::kStart;
  encoder_.ProtocolHeader(out_);
  Flush();
  Read();
}

void Connection::Read() {
  stream_.Read(boost::asio::buffer(buffer_),
               [self = shared_from_this()](const error_code& error, size_t count) { self->OnRead(error, count); });
}

void Connection::OnRead(const error_code& error, size_t count) {
  if (step_ == Step::kClosed) return;
  if (error) return Fail(fmt::format("the connection was lost: {}", error.message()));
  read_at_ = Now();
  const Status fed =
      decoder_.Feed({buffer_.data(), count}, [this](const amqp_frame_t& frame) { return OnFrame(frame); });
  if (!fed) return Fail(fed.error().message);
  if (step_ == Step::kClosed) return;
  publisher_.EndTurn();
  if (step_ != Step::kClosed) Read();
}

bool Connection::OnFrame(const amqp_frame_t& frame) {
  if (frame.frame_type == kProtocolHeaderFrame) {
    Fail("it speaks another version of AMQP than 0-9-1");
  } else if (frame.frame_type == AMQP_FRAME_HEARTBEAT) {
    return true;
  } else if (frame.channel != 0) {
    if (up()) publisher_.OnFrame(frame);
  } else if (frame.frame_type == AMQP_FRAME_METHOD) {
    OnMethod(frame.payload.method);
  }
  return step_ != Step::kClosed;
}

void Connection::OnMethod(const amqp_method_t& method) {
  switch (method.id) {
    case AMQP_CONNECTION_START_METHOD:
      if (Expect(Step::kStart, "connection.start")) Login(As<amqp_connection_start_t>(method));
      break;
    case AMQP_CONNECTION_TUNE_METHOD:
      if (Expect(Step::kTune, "connection.tune")) Tune(As<amqp_connection_tune_t>(method));
      break;
    case AMQP_CONNECTION_OPEN_OK_METHOD:
      if (!Expect(Step::kOpen, "connection.open-ok")) break;
      step_ = Step::kUp;
      publisher_.OnUp();
      break;
    case AMQP_CONNECTION_CLOSE_METHOD:
      OnClose(As<amqp_connection_close_t>(method));
      break;
    case AMQP_CONNECTION_CLOSE_OK_METHOD:
      Fail("closed");
      break;
    case AMQP_CONNECTION_BLOCKED_METHOD:
      if (up()) publisher_.OnBlocked(true, TextOf(As<amqp_connection_blocked_t>(method).reason));
      break;
    case AMQP_CONNECTION_UNBLOCKED_METHOD:
      if (up()) publisher_.OnBlocked(false, {});
      break;
    default:
      Fail(fmt::format("it sent an unexpected method: {}", amqp_method_name(method.id)));
  }
}

bool Connection::Expect(Step step, std::string_view method) {
  if (step_ == step) return true;
  Fail(fmt::format("it sent {} at the wrong time", method));
  return false;
}

void Connection::Login(const amqp_connection_start_t& start) {
  if (!TextOf(start.mechanisms).contains("PLAIN")) {
    return Fail(fmt::format("it takes no password (PLAIN), but: {}", TextOf(start.mechanisms)));
  }
  // Without the last one the broker answers a wrong password by closing the socket, without a reason.
  amqp_table_entry_t capabilities[] = {Flag("publisher_confirms"), Flag("basic.nack"), Flag("connection.blocked"),
                                       Flag("authentication_failure_close")};
  const amqp_table_t table{.num_entries = static_cast<int>(std::size(capabilities)), .entries = capabilities};
  amqp_table_entry_t properties[] = {
      TextField("product", "Tocsin"),
      TextField("connection_name", options_.connection_name),
      {.key = BytesOf("capabilities"), .value = {.kind = AMQP_FIELD_KIND_TABLE, .value = {.table = table}}}};
  const std::string secret = fmt::format("{0}{1}{0}{2}", '\0', options_.username, options_.password);
  encoder_.Method(
      out_, 0, AMQP_CONNECTION_START_OK_METHOD,
      amqp_connection_start_ok_t{
          .client_properties = {.num_entries = static_cast<int>(std::size(properties)), .entries = properties},
          .mechanism = BytesOf("PLAIN"),
          .response = BytesOf(secret),
          .locale = BytesOf("en_US")});
  step_ = Step::kTune;
  Flush();
}

void Connection::Tune(const amqp_connection_tune_t& tune) {
  const uint32_t frame_max = Agree(tune.frame_max, kFrameMax);
  if (frame_max < AMQP_FRAME_MIN_SIZE) return Fail(fmt::format("it takes frames of {} bytes at most", frame_max));
  channel_max_ = Agree(tune.channel_max, options_.channels_max);
  const auto ours = std::chrono::duration_cast<std::chrono::seconds>(options_.heartbeat);
  heartbeat_ = std::chrono::seconds(Agree(tune.heartbeat, static_cast<uint16_t>(ours.count())));
  encoder_.SetFrameMax(frame_max);
  decoder_.SetFrameMax(frame_max);
  encoder_.Method(
      out_, 0, AMQP_CONNECTION_TUNE_OK_METHOD,
      amqp_connection_tune_ok_t{
          .channel_max = channel_max_, .frame_max = frame_max, .heartbeat = static_cast<uint16_t>(heartbeat_.count())});
  encoder_.Method(
      out_, 0, AMQP_CONNECTION_OPEN_METHOD,
      amqp_connection_open_t{.virtual_host = BytesOf(options_.vhost), .capabilities = BytesOf({}), .insist = 0});
  step_ = Step::kOpen;
  Flush();
}

void Connection::OnClose(const amqp_connection_close_t& close) {
  std::string why = fmt::format("{} {}", close.reply_code, TextOf(close.reply_text));
  encoder_.Method(out_, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, amqp_connection_close_ok_t{});
  Flush();
  Fail(std::move(why));
}

void Connection::Flush() {
  if (writing_ || out_.empty() || step_ == Step::kClosed) return;
  sending_.clear();
  if (sending_.capacity() > kKeptBytes) sending_ = {};
  std::swap(out_, sending_);
  writing_ = true;
  stream_.Write(boost::asio::buffer(sending_), [self = shared_from_this()](const error_code& error, size_t) {
    self->writing_ = false;
    if (self->step_ == Step::kClosed) return;
    if (error) return self->Fail(fmt::format("the connection was lost: {}", error.message()));
    self->written_at_ = Now();
    self->Flush();
    self->publisher_.EndTurn();
  });
}

TimePoint Connection::Check(TimePoint now) {
  if (step_ == Step::kClosed) return TimePoint::max();
  if (!up()) {
    if (now < deadline_) return deadline_;
    Fail(fmt::format("no connection within {} ms", options_.connect_timeout.count()));
    return TimePoint::max();
  }
  if (heartbeat_.count() == 0) return TimePoint::max();
  if (now >= read_at_ + 2 * heartbeat_) {
    Fail(fmt::format("no sign of life for {} s", 2 * heartbeat_.count()));
    return TimePoint::max();
  }
  // A write under way is a sign of life too.
  const auto beat = Millis(heartbeat_) / 2;
  if (now >= written_at_ + beat && !writing_) {
    encoder_.Heartbeat(out_);
    Flush();
  }
  return std::min(now + beat, read_at_ + 2 * heartbeat_);
}

void Connection::RequestClose() {
  if (!up()) return;
  step_ = Step::kClosing;
  deadline_ = Now() + kCloseWithin;
  encoder_.Method(
      out_, 0, AMQP_CONNECTION_CLOSE_METHOD,
      amqp_connection_close_t{
          .reply_code = AMQP_REPLY_SUCCESS, .reply_text = BytesOf("Tocsin stops"), .class_id = 0, .method_id = 0});
  Flush();
}

void Connection::Close() {
  step_ = Step::kClosed;
  stream_.Close();
}

void Connection::Fail(std::string why) {
  if (step_ == Step::kClosed) return;
  Close();
  publisher_.OnLost(fmt::format("{}: {}", options_.Where(), why));
}

}  // namespace tocsin::rabbitmq
