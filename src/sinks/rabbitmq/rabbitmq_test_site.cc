#include "sinks/rabbitmq/rabbitmq_test_site.h"

#include <amqp_tcp_socket.h>

#include "sinks/rabbitmq/codec.h"

namespace tocsin::rabbitmq {
namespace {

constexpr amqp_channel_t kChannel = 1;

}  // namespace

Result<real::RabbitMqServer*> SharedServer() {
  static std::unique_ptr<real::RabbitMqServer> server;
  if (const std::string why = real::WhyNoRabbitMq(); !why.empty()) return Fail(Code::kUnavailable, "{}", why);
  if (server == nullptr) {
    auto made = real::RabbitMqServer::Make();
    if (!made) return std::unexpected(std::move(made).error());
    server = *std::move(made);
  }
  server->Continue();
  if (!server->running()) TOCSIN_TRY(server->Start());
  return server.get();
}

Options OptionsFor(const real::RabbitMqServer& server) {
  Options options;
  options.port = server.port();
  options.username = real::RabbitMqServer::kUsername;
  options.password = real::RabbitMqServer::kPassword;
  options.heartbeat = Millis(2'000);
  options.backoff_max = Millis(500);
  return options;
}

Receiver::Receiver(const real::RabbitMqServer& server) : connection_(amqp_new_connection()) {
  amqp_socket_t* const socket = amqp_tcp_socket_new(connection_);
  EXPECT_EQ(amqp_socket_open(socket, "127.0.0.1", server.port()), AMQP_STATUS_OK);
  const amqp_rpc_reply_t login = amqp_login(connection_, "/", 0, 128 << 10, 0, AMQP_SASL_METHOD_PLAIN,
                                            real::RabbitMqServer::kUsername, real::RabbitMqServer::kPassword);
  EXPECT_EQ(login.reply_type, AMQP_RESPONSE_NORMAL);
  amqp_channel_open(connection_, kChannel);
  Check("channel.open");
}

Receiver::~Receiver() { amqp_destroy_connection(connection_); }

void Receiver::Check(std::string_view what) {
  const amqp_rpc_reply_t reply = amqp_get_rpc_reply(connection_);
  ASSERT_EQ(reply.reply_type, AMQP_RESPONSE_NORMAL) << what;
}

void Receiver::MakeQueue(const std::string& name, int max_length) {
  amqp_queue_delete(connection_, kChannel, BytesOf(name), 0, 0);
  Check("queue.delete");
  amqp_table_entry_t entries[] = {TextField("x-overflow", "reject-publish"), {}};
  entries[1].key = BytesOf("x-max-length");
  entries[1].value.kind = AMQP_FIELD_KIND_I32;
  entries[1].value.value.i32 = max_length;
  const amqp_table_t arguments{.num_entries = max_length > 0 ? 2 : 0, .entries = entries};
  amqp_queue_declare(connection_, kChannel, BytesOf(name), 0, 1, 0, 0, arguments);
  Check("queue.declare");
}

void Receiver::MakeExchange(const std::string& name, const std::string& routing_key, const std::string& queue) {
  amqp_exchange_declare(connection_, kChannel, BytesOf(name), BytesOf("direct"), 0, 1, 0, 0, amqp_empty_table);
  Check("exchange.declare");
  amqp_queue_bind(connection_, kChannel, BytesOf(queue), BytesOf(name), BytesOf(routing_key), amqp_empty_table);
  Check("queue.bind");
}

void Receiver::DeleteExchange(const std::string& name) {
  amqp_exchange_delete(connection_, kChannel, BytesOf(name), 0);
  Check("exchange.delete");
}

std::vector<Received> Receiver::Take(const std::string& queue) {
  const auto* const declared = amqp_queue_declare(connection_, kChannel, BytesOf(queue), 1, 1, 0, 0, amqp_empty_table);
  Check("queue.declare");
  std::vector<Received> all;
  if (declared == nullptr || declared->message_count == 0) return all;
  const uint32_t count = declared->message_count;
  amqp_basic_consume(connection_, kChannel, BytesOf(queue), BytesOf("taker"), 0, 0, 0, amqp_empty_table);
  Check("basic.consume");
  while (all.size() < count) {
    amqp_maybe_release_buffers(connection_);
    amqp_envelope_t envelope;
    const timeval within{.tv_sec = 30, .tv_usec = 0};
    const amqp_rpc_reply_t reply = amqp_consume_message(connection_, &envelope, &within, 0);
    EXPECT_EQ(reply.reply_type, AMQP_RESPONSE_NORMAL) << all.size() << " of " << count;
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) break;
    const amqp_basic_properties_t& properties = envelope.message.properties;
    Received& one = all.emplace_back();
    one.message_id = TextOf(properties.message_id);
    one.content_type = TextOf(properties.content_type);
    one.delivery_mode = properties.delivery_mode;
    one.body = TextOf(envelope.message.body);
    for (int i = 0; i < properties.headers.num_entries; ++i) {
      const amqp_table_entry_t& entry = properties.headers.entries[i];
      one.headers.emplace(TextOf(entry.key), TextOf(entry.value.value.bytes));
    }
    if (all.size() == count) amqp_basic_ack(connection_, kChannel, envelope.delivery_tag, 1);
    amqp_destroy_envelope(&envelope);
  }
  amqp_basic_cancel(connection_, kChannel, BytesOf("taker"));
  Check("basic.cancel");
  return all;
}

Site::Site(Options options) {
  auto made = Publisher::Make(std::move(options));
  EXPECT_TRUE(made) << made.error().message;
  publisher_ = *std::move(made);
}

Site::~Site() {
  for (const auto& topic : topics_) topic->Close();
}

Site::Topic& Site::Open(const std::string& name, std::map<std::string, std::string, std::less<>> settings) {
  tocsin::Topic topic = DefaultTopic(name);
  topic.delivery = {.sink = "rabbitmq", .settings = std::move(settings)};
  EXPECT_TRUE(Validate(topic));
  return *topics_.emplace_back(new Topic(*this, topic));
}

bool Site::RunUntil(const std::function<bool()>& holds, Millis within) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    loop_.io().run_one_for(Millis(20));
  }
  return true;
}

Site::Topic::Topic(Site& site, const tocsin::Topic& topic) : site_(site), name_(topic.name) {
  auto opened = site_.publisher().Open(topic, site_.loop());
  EXPECT_TRUE(opened) << opened.error().message;
  sink_ = *std::move(opened);
}

void Site::Topic::Deliver(size_t count, const std::function<void(size_t index, JobView& job)>& change) {
  auto batch = std::make_shared<JobBatch>();
  const size_t first = sent_.size();
  for (size_t i = 0; i < count; ++i) {
    sent_.push_back({.id = fmt::format("{}-{}", name_, first + i)});
    JobView& job = batch->jobs.emplace_back();
    job.own_id = sent_.back().id;  // a deque's elements stay where they are
    job.attempt = 1;
    const uint64_t number = ++site_.made_;
    job.token = {.slot = 1, .handle = number, .fence = number};
    job.payload = "payload";
    if (change) change(i, job);
  }
  open_ += count;
  sink_->Deliver(std::move(batch), [this, first](size_t index, Delivered delivered) {
    Sent& sent = sent_[first + index];
    ASSERT_EQ(++sent.answers, 1) << sent.id << " was answered more than once";
    sent.delivered = std::move(delivered);
    --open_;
  });
}

size_t Site::Topic::Count(DeliverOutcome outcome) const {
  return static_cast<size_t>(std::ranges::count_if(
      sent_, [outcome](const Sent& sent) { return sent.answers > 0 && sent.delivered.outcome == outcome; }));
}

bool Site::Topic::Await(Millis within) {
  return site_.RunUntil([this] { return open_ == 0; }, within);
}

void Site::Topic::AwaitHealth() {
  const auto end = std::chrono::steady_clock::now() + kSoon;
  do {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << last().reason;
    Deliver(1);
    ASSERT_TRUE(Await());
  } while (last().outcome != DeliverOutcome::kConfirmed);
}

void Site::Topic::Close() {
  if (sink_ == nullptr) return;
  bool closed = false;
  sink_->Close([&closed] { closed = true; });
  EXPECT_TRUE(site_.RunUntil([&closed] { return closed; }));
  EXPECT_EQ(open_, 0) << "the sink says that it has closed with jobs under way";
  sink_.reset();
}

void BrokerTest::SetUp() {
  const Result<real::RabbitMqServer*> server = SharedServer();
  if (!server && server.error().code == Code::kUnavailable) GTEST_SKIP() << server.error().message;
  ASSERT_TRUE(server) << server.error().message;
  server_ = *server;
  receiver_ = std::make_unique<Receiver>(*server_);
}

}  // namespace tocsin::rabbitmq
