#include "net/listener.h"

#include <condition_variable>

#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

namespace tocsin::net {
namespace {

using boost::asio::ip::tcp;

/// A listener on its own thread over two shards; keeps what it accepts.
class ListenerTest : public testing::Test {
 protected:
  void Open(size_t connections_max) {
    auto opened = Listener::Open(main_.io(), *MakeAddress("127.0.0.1", 0), {connections_max, "full\n"});
    ASSERT_TRUE(opened) << opened.error().message;
    listener_ = std::move(*opened);
    listener_->Start({&shards_[0], &shards_[1]}, [this](size_t shard, Socket socket, ConnectionPass pass) {
      EXPECT_TRUE(shards_[shard].InThread());
      const std::lock_guard lock(mutex_);
      accepted_.push_back({shard, std::move(socket), std::move(pass)});
      changed_.notify_all();
    });
    for (AsioLoop* loop : {&main_, &shards_[0], &shards_[1]}) threads_.emplace_back([loop] { loop->Run(); });
  }
  void TearDown() override {
    for (AsioLoop* loop : {&main_, &shards_[0], &shards_[1]}) loop->Stop();
    for (auto& thread : threads_) thread.join();
    accepted_.clear();
  }
  tcp::socket Connect() {
    tcp::socket socket(client_);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), listener_->address().port});
    return socket;
  }
  void WaitForAccepted(size_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return accepted_.size() >= count; }));
  }

  struct Taken {
    size_t shard;
    Socket socket;
    ConnectionPass pass;
  };
  RealClock clock_;
  AsioLoop shards_[2] = {AsioLoop(clock_), AsioLoop(clock_)};
  AsioLoop main_{clock_};  // destroyed before the shards: an accept under way holds a socket of theirs
  boost::asio::io_context client_;
  std::unique_ptr<Listener> listener_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Taken> accepted_;
  std::vector<std::thread> threads_;
};

TEST_F(ListenerTest, DealsConnectionsToTheShardsInTurn) {
  Open(10);
  std::vector<tcp::socket> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(Connect());
  WaitForAccepted(4);
  EXPECT_EQ(std::ranges::count(accepted_, 0U, &Taken::shard), 2);
  EXPECT_EQ(std::ranges::count(accepted_, 1U, &Taken::shard), 2);
}

TEST_F(ListenerTest, TellsAConnectionOverTheLimitAndTakesTheNextWhenOneHasGone) {
  Open(1);
  auto first = Connect();
  WaitForAccepted(1);

  auto second = Connect();
  boost::asio::write(second, boost::asio::buffer("GET / HTTP/1.1\r\n\r\n", 18));
  std::string words;
  boost::system::error_code error;
  boost::asio::read(second, boost::asio::dynamic_buffer(words), error);
  EXPECT_EQ(error, boost::asio::error::eof);
  EXPECT_EQ(words, "full\n");

  {
    const std::lock_guard lock(mutex_);
    accepted_.clear();
  }
  auto third = Connect();
  WaitForAccepted(1);
}

TEST_F(ListenerTest, AnAddressInUseIsRefused) {
  Open(1);
  const auto again = Listener::Open(client_, listener_->address(), {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kInUse);
  EXPECT_NE(again.error().message.find(listener_->address().Text()), std::string::npos) << again.error().message;
}

}  // namespace
}  // namespace tocsin::net
