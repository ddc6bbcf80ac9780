// How many webhooks a second one sink sends to a keep-alive receiver on the same machine, which does nothing but
// answer.
//
//   webhook_bench [jobs] [in_flight] [payload bytes] [batch]
//   webhook_bench serve      the receiver alone, for a server: prints its URL, and answers until it is killed
#include <array>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <unistd.h>

#include "base/clock.h"
#include "net/asio_loop.h"
#include "sinks/webhook/factory.h"

namespace tocsin::webhook {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Answers each request with 200; requests come one after the other.
class Echo final : public std::enable_shared_from_this<Echo> {
 public:
  explicit Echo(tcp::socket socket) : socket_(std::move(socket)) {}

  void Read() {
    socket_.async_read_some(asio::buffer(buffer_), [self = shared_from_this()](const error_code& error, size_t bytes) {
      if (error) return;
      self->got_.append(self->buffer_.data(), bytes);
      self->Whole() ? self->Answer() : self->Read();
    });
  }

 private:
  bool Whole() const {
    constexpr std::string_view kLength = "content-length: ";
    const size_t end = got_.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const size_t body = std::strtoul(got_.c_str() + got_.find(kLength) + kLength.size(), nullptr, 10);
    return got_.size() >= end + 4 + body;
  }
  void Answer() {
    static constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    got_.clear();
    asio::async_write(socket_, asio::buffer(kAnswer), [self = shared_from_this()](const error_code& error, size_t) {
      if (!error) self->Read();
    });
  }

  tcp::socket socket_;
  std::string got_;
  std::array<char, 16 << 10> buffer_;
};

class Answering {
 public:
  Answering() {
    Accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Answering() {
    io_.stop();
    thread_.join();
  }
  uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  void Accept() {
    acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
      if (error) return;
      socket.set_option(tcp::no_delay(true));
      std::make_shared<Echo>(std::move(socket))->Read();
      Accept();
    });
  }

  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
  std::thread thread_;
};

struct Plan {
  size_t jobs = 200'000;
  size_t in_flight = 64;
  size_t payload_bytes = 128;
  size_t batch = 1;
};

/// Keeps as many jobs under way as a dispatcher would.
class Feeder {
 public:
  Feeder(Sink& sink, const Plan& plan) : sink_(sink), plan_(plan), payload_(plan.payload_bytes, 'x') {}

  void Feed() {
    constexpr size_t kHandedOver = 16;  // at once, so that the cost of a batch is shared as it is in the server
    const size_t under_way_max = plan_.in_flight * plan_.batch + kHandedOver;
    while (given_ < plan_.jobs && given_ - answered_ + kHandedOver <= under_way_max) {
      auto batch = std::make_shared<JobBatch>();
      for (size_t i = 0; i < kHandedOver; ++i) batch->jobs.push_back(Next());
      sink_.Deliver(std::move(batch), [this](size_t, const Delivered& delivered) {
        ++answered_;
        failed_ += delivered.outcome == DeliverOutcome::kConfirmed ? 0 : 1;
        Feed();
      });
    }
  }
  bool done() const { return answered_ >= plan_.jobs; }
  size_t failed() const { return failed_; }
  size_t answered() const { return answered_; }

 private:
  JobView Next() {
    JobView job;
    job.uid = ++given_;
    job.attempt = 1;
    job.due = FromMs(1'700'000'000'000);
    job.token = {.slot = 1, .handle = given_, .fence = given_};
    job.payload = payload_;
    return job;
  }

  Sink& sink_;
  const Plan plan_;
  const std::string payload_;
  size_t given_ = 0;
  size_t answered_ = 0;
  size_t failed_ = 0;
};

int Run(const Plan& plan) {
  Answering receiver;
  RealClock clock;
  net::AsioLoop loop(clock);
  Options options;
  options.allow = "127.0.0.0/8";
  options.version = "bench";
  options.find_secret = [](std::string_view) -> Result<std::string> {
    return "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  };
  options.loops = {&loop};
  auto factory = Factory::Make(options).value();
  Topic topic = DefaultTopic("bench");
  topic.delivery.sink = "webhook";
  topic.delivery.settings = {{"url", fmt::format("http://127.0.0.1:{}/", receiver.port())},
                             {"secret", "bench"},
                             {"in_flight", std::to_string(plan.in_flight)},
                             {"batch", std::to_string(plan.batch)}};
  auto sink = factory->Open(topic, loop).value();
  Feeder feeder(*sink, plan);
  const auto from = std::chrono::steady_clock::now();
  feeder.Feed();
  while (!feeder.done()) loop.io().run_one();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - from;
  bool closed = false;
  sink->Close([&closed] { closed = true; });
  while (!closed) loop.io().run_one();
  fmt::print("{} jobs of {} bytes, in_flight {}, batch {}: {:.0f} jobs/s, {} not confirmed\n", feeder.answered(),
             plan.payload_bytes, plan.in_flight, plan.batch, static_cast<double>(feeder.answered()) / took.count(),
             feeder.failed());
  return feeder.failed() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tocsin::webhook

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "serve") {
    const tocsin::webhook::Answering receiver;
    fmt::print("http://127.0.0.1:{}/\n", receiver.port());
    std::fflush(stdout);
    pause();
    return 0;
  }
  tocsin::webhook::Plan plan;
  size_t* const fields[] = {&plan.jobs, &plan.in_flight, &plan.payload_bytes, &plan.batch};
  for (int i = 1; i < argc && i <= 4; ++i) *fields[i - 1] = std::strtoul(argv[i], nullptr, 10);
  return tocsin::webhook::Run(plan);
}
