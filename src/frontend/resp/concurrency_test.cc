// Real threads: clients that pipeline to two shards, whose jobs live on both: what one thread reads, the other one
// stores. Every job is delivered once, with its own bytes; then everything stops. TSan watches.
#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "core/figures.h"
#include "core/service.h"
#include "frontend/resp/server.h"
#include "frontend/resp/test_replies.h"
#include "net/asio_loop.h"
#include "spi/contract/memory_store.h"

namespace tocsin::resp {
namespace {

using boost::asio::ip::tcp;

constexpr size_t kShards = 2;
constexpr size_t kClients = 4;
constexpr size_t kRounds = 60;
constexpr size_t kTopics = 4;
constexpr size_t kJobsOfARound = 24;
constexpr size_t kJobs = kClients * kRounds * kJobsOfARound;

std::string TopicOf(size_t number) { return fmt::format("t{}", number % kTopics); }
/// Of a job: its number, and some more that only it has.
std::string PayloadOf(size_t number) { return fmt::format("{} {}", number, std::string(number % 300, 'x')); }

std::string Text(const std::vector<std::string>& args) {
  std::string text = fmt::format("*{}\r\n", args.size());
  for (const std::string& arg : args) text += fmt::format("${}\r\n{}\r\n", arg.size(), arg);
  return text;
}

/// A client that waits for what it asked for, on a thread of its own.
class Blocking {
 public:
  explicit Blocking(tcp::socket socket) : socket_(std::move(socket)) {}

  std::vector<Reply> Ask(std::string_view commands, size_t count) {
    boost::asio::write(socket_, boost::asio::buffer(commands));
    std::vector<Reply> replies;
    while (replies.size() < count) {
      auto [form, size, reply] = ReadReply(got_);
      EXPECT_NE(form, Form::kBad);
      if (form == Form::kWhole) {
        replies.push_back(std::move(reply));
        got_.erase(0, size);
        continue;
      }
      char bytes[16 << 10];
      boost::system::error_code error;
      const size_t read = socket_.read_some(boost::asio::buffer(bytes), error);
      EXPECT_FALSE(error) << error.message();
      if (error) replies.resize(count);
      got_.append(bytes, read);
    }
    return replies;
  }

 private:
  tcp::socket socket_;
  std::string got_;
};

class RespConcurrencyTest : public testing::Test {
 protected:
  RespConcurrencyTest() : delivered_(kJobs) {
    std::vector<Service::ShardParts> parts;
    for (size_t i = 0; i < kShards; ++i) {
      loops_.push_back(std::make_unique<net::AsioLoop>(clock_));
      // One answers within the call, the other one later.
      stores_.push_back(std::make_unique<MemoryStore>(i == 0 ? nullptr : loops_.back().get()));
      parts.push_back({loops_[i].get(), stores_[i].get()});
    }
    service_ = std::make_unique<Service>(std::move(parts), clock_, metrics_);
    const Context context{*service_,
                          clock_,
                          nullptr,
                          metrics_,
                          {"test", kShards, clock_.IoNow(), std::make_shared<const std::atomic<size_t>>(0)}};
    for (auto& loop : loops_) servers_.push_back(std::make_unique<Server>(context, budget_, *loop, Options{}));
    service_->Start();
    for (auto& loop : loops_) threads_.emplace_back([&loop] { loop->Run(); });
  }
  ~RespConcurrencyTest() override {
    std::latch ended(1 + kShards);
    loops_[0]->Post([&] { service_->Stop(*loops_[0], [&] { ended.count_down(); }); });
    for (size_t i = 0; i < kShards; ++i) {
      loops_[i]->Post([&, i] { servers_[i]->Drain([&] { ended.count_down(); }); });
    }
    ended.wait();
    for (auto& loop : loops_) loop->Stop();
    threads_.clear();
    servers_.clear();
  }

  Blocking Connect(size_t shard) {
    tcp::acceptor acceptor(client_io_, {boost::asio::ip::address_v4::loopback(), 0});
    tcp::socket socket(client_io_);
    socket.connect(acceptor.local_endpoint());
    net::Socket accepted(loops_[shard]->io());
    acceptor.accept(accepted);
    accepted.set_option(tcp::no_delay(true));
    loops_[shard]->Post([&server = *servers_[shard], accepted = std::move(accepted)]() mutable {
      server.Accept(std::move(accepted), nullptr);
    });
    return Blocking(std::move(socket));
  }

  /// Jobs `from` and the next ones, by both commands, as arrays and as lines.
  static std::string SubmitText(size_t from, size_t& commands) {
    std::string text;
    for (size_t i = 0; i < kJobsOfARound; ++i) {
      const size_t number = from + i;
      const std::string id = fmt::format("own {}", number);
      if (i % 8 == 7) {
        text += fmt::format("JOB.SUBMIT {} '{}' ID '{}'\r\n", TopicOf(number), PayloadOf(number), id);
      } else if (i % 3 == 0) {
        text += Text({"JOB.MSUBMIT", TopicOf(number), "DELAY", "0", PayloadOf(number)});
      } else {
        text += Text({"JOB.SUBMIT", TopicOf(number), PayloadOf(number), "ID", id});
      }
      ++commands;
    }
    return text;
  }

  /// Notes what was delivered; the acks for it.
  std::string Take(const Reply& jobs, const std::string& topic, size_t& commands) {
    std::string acks;
    for (const Reply& job : jobs.items) {
      const size_t number = std::stoul(job[2].text);
      EXPECT_LT(number, kJobs);
      EXPECT_EQ(job[2].text, PayloadOf(number));
      EXPECT_EQ(delivered_[number].fetch_add(1), 0) << "twice";
      acks += Text({"JOB.ACK", topic, job[1].text});
      ++commands;
    }
    return acks;
  }

  void Live(size_t client) {
    Blocking socket = Connect(client % kShards);
    std::string acks;
    size_t ack_commands = 0;
    for (size_t round = 0; acked_.load() < kJobs && !HasFailure(); ++round) {
      size_t commands = ack_commands;
      std::string text = std::exchange(acks, "");
      if (round < kRounds) text += SubmitText((client * kRounds + round) * kJobsOfARound, commands);
      const bool over = round >= kRounds;
      for (size_t topic = 0; topic < kTopics; ++topic) {
        text += Text({"JOB.RESERVE", TopicOf(topic), "MAX", "50", "WAIT", over ? "5" : "0"});
      }
      const auto replies = socket.Ask(text, commands + kTopics);
      for (size_t i = 0; i < ack_commands; ++i) EXPECT_EQ(replies[i][0].text, "ok");
      for (size_t i = ack_commands; i < commands; ++i) EXPECT_EQ(replies[i].type, '*') << replies[i].text;
      acked_ += std::exchange(ack_commands, 0);
      for (size_t topic = 0; topic < kTopics; ++topic) {
        acks += Take(replies[commands + topic], TopicOf(topic), ack_commands);
      }
    }
  }

  RealClock clock_;
  metrics::Registry metrics_;
  net::Budget budget_{64 << 20, metrics_};
  boost::asio::io_context client_io_;
  std::vector<std::atomic<int>> delivered_;
  std::atomic<size_t> acked_ = 0;
  std::vector<std::unique_ptr<net::AsioLoop>> loops_;
  std::vector<std::unique_ptr<MemoryStore>> stores_;
  std::unique_ptr<Service> service_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::jthread> threads_;
};

TEST_F(RespConcurrencyTest, EveryJobOnceWithItsOwnBytes) {
  {
    std::vector<std::jthread> clients;
    for (size_t i = 0; i < kClients; ++i) clients.emplace_back([this, i] { Live(i); });
  }
  EXPECT_EQ(acked_.load(), kJobs);
  for (const auto& times : delivered_) EXPECT_EQ(times.load(), 1);
}

}  // namespace
}  // namespace tocsin::resp
