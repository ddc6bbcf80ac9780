// Frames like the server's, made beforehand and written as they are on one channel with confirms: what the broker
// itself can take. rabbitmq-c logs in and reads.
#include <memory>
#include <vector>

#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <poll.h>
#include <sys/socket.h>

#include "model/topic.h"
#include "push/push.h"
#include "sinks/rabbitmq/message.h"

namespace tocsin::bench {
namespace {

constexpr size_t kInFlight = 5'000;
constexpr size_t kBlock = 100;  // publishes in one write
constexpr amqp_channel_t kChannel = 1;
constexpr int kFrameMax = 128 << 10;

class Link {
 public:
  explicit Link(const Endpoint& endpoint) : state_(amqp_new_connection()) {
    amqp_socket_t* const socket = amqp_tcp_socket_new(state_);
    if (amqp_socket_open(socket, endpoint.host.c_str(), endpoint.port) != AMQP_STATUS_OK) Die("no connection");
    Check(amqp_login(state_, "/", 0, kFrameMax, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest"), "login");
    amqp_channel_open(state_, kChannel);
    Check(amqp_get_rpc_reply(state_), "channel.open");
    amqp_confirm_select(state_, kChannel);
    Check(amqp_get_rpc_reply(state_), "confirm.select");
  }
  ~Link() { amqp_destroy_connection(state_); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Makes it, and says how many messages are in it.
  size_t Declare(const std::string& queue, bool lazy) {
    amqp_table_entry_t settings[] = {rabbitmq::TextField("x-queue-mode", "lazy"), amqp_table_entry_t{}};
    settings[1].key = rabbitmq::BytesOf("x-queue-version");
    settings[1].value.kind = AMQP_FIELD_KIND_I32;
    settings[1].value.value.i32 = 2;
    const amqp_table_t table{.num_entries = lazy ? 2 : 0, .entries = settings};
    const amqp_queue_declare_ok_t* declared =
        amqp_queue_declare(state_, kChannel, amqp_cstring_bytes(queue.c_str()), 0, 1, 0, 0, table);
    Check(amqp_get_rpc_reply(state_), "queue.declare");
    return declared->message_count;
  }
  void Delete(const std::string& queue) {
    amqp_queue_delete(state_, kChannel, amqp_cstring_bytes(queue.c_str()), 0, 0);
    Check(amqp_get_rpc_reply(state_), "queue.delete");
  }

  void Write(std::string_view bytes) {
    const int fd = amqp_get_sockfd(state_);
    while (!bytes.empty()) {
      const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<size_t>(sent));
      } else if (errno == EAGAIN) {
        pollfd writable{.fd = fd, .events = POLLOUT};
        poll(&writable, 1, 1000);
      } else {
        Die("the connection was lost");
      }
    }
  }

  /// Whether a frame came within `wait_ms`.
  bool Read(amqp_frame_t& frame, int wait_ms) {
    const timeval wait{.tv_sec = 0, .tv_usec = wait_ms * 1000};
    amqp_maybe_release_buffers(state_);
    const int status = amqp_simple_wait_frame_noblock(state_, &frame, &wait);
    if (status == AMQP_STATUS_TIMEOUT) return false;
    if (status != AMQP_STATUS_OK) Die("the connection was lost: {}", amqp_error_string2(status));
    return true;
  }

 private:
  static void Check(const amqp_rpc_reply_t& reply, std::string_view what) {
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) Die("{} was refused", what);
  }

  const amqp_connection_state_t state_;
};

/// Which publishes are confirmed, by their numbers from 1.
class Confirms {
 public:
  explicit Confirms(size_t jobs) : done_(jobs + 1) {}
  size_t count() const { return count_; }

  void Take(const amqp_frame_t& frame) {
    if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD) {
      Die("the broker did not confirm: {}",
          frame.frame_type == AMQP_FRAME_METHOD ? amqp_method_name(frame.payload.method.id) : "a message came back");
    }
    const auto& ack = *static_cast<const amqp_basic_ack_t*>(frame.payload.method.decoded);
    if (ack.multiple == 0) return Mark(ack.delivery_tag);
    for (; low_ <= ack.delivery_tag; ++low_) Mark(low_);
  }

 private:
  void Mark(size_t tag) {
    if (!done_.at(tag)) ++count_;
    done_[tag] = true;
  }

  std::vector<bool> done_;
  size_t low_ = 1;
  size_t count_ = 0;
};

std::string EncodeBlock(const PushOptions& options, std::string_view payload, size_t count) {
  Topic topic = DefaultTopic("bench");
  topic.delivery = {.sink = "rabbitmq", .settings = {{"routing_key", options.name}}};
  auto message = rabbitmq::Message::Make(topic);
  if (!message) Die("{}", message.error().message);
  rabbitmq::Encoder encoder;
  encoder.SetFrameMax(kFrameMax);
  std::string out;
  const JobView job = SampleJob(payload);
  for (size_t i = 0; i < count; ++i) {
    if (!message->Append(encoder, out, kChannel, job)) Die("a message cannot be encoded");
  }
  return out;
}

}  // namespace

Json LoadRabbitMq(const PushOptions& given) {
  PushOptions options = given;
  options.jobs -= options.jobs % kBlock;
  const size_t in_flight = options.in_flight > 0 ? options.in_flight : kInFlight;
  const size_t jobs = options.jobs;
  const std::string payload(options.payload, 'x');
  const std::string block = EncodeBlock(options, payload, kBlock);
  Link link(Endpoint::Parse(options.address));
  link.Declare(options.name, options.lazy);
  Confirms confirms(jobs);
  PushMeter meter(options);
  size_t sent = 0;
  amqp_frame_t frame;
  while (confirms.count() < jobs) {
    const bool room = sent < jobs && sent + kBlock - confirms.count() <= in_flight;
    if (room) {
      link.Write(block);
      sent += kBlock;
    }
    for (int wait_ms = room ? 0 : 10; link.Read(frame, wait_ms); wait_ms = 0) confirms.Take(frame);
    meter.Check(confirms.count());
  }
  Json result = meter.Result();
  result.Count("at_receiver", link.Declare(options.name, options.lazy));
  if (options.remove) link.Delete(options.name);
  return result;
}

}  // namespace tocsin::bench
