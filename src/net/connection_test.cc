#include "net/connection.h"

#include <functional>
#include <new>

#include "base/turn_share.h"
#include "net/socket_test_site.h"

namespace tocsin::net {
namespace {

/// An exception that cannot even be logged.
class Nameless : public std::exception {
 public:
  const char* what() const noexcept override { return nullptr; }
};

class ConnectionTest : public SocketTest {
 protected:
  struct TestDoor;

  struct TestConnection final : Connection {
    TestConnection(TestDoor& door, Socket socket) : Connection(door, std::move(socket), nullptr), test(door.test) {}
    void Start() override { test.start(*this); }
    void Drain() override { Close(); }
    void TokensChanged() override {}
    bool IsLate(Deadline::TimePoint) const override { return test.late && !over; }
    void TimeOut() override {
      over = true;
      ++test.timed_out;
    }
    void OnClose() override { test.on_close(); }

    ConnectionTest& test;
    bool over = false;
  };

  struct TestDoor final : Door {
    TestDoor(ConnectionTest& owner, AsioLoop& loop, Budget& budget, metrics::Registry& metrics)
        : Door("test", loop, budget, metrics), test(owner) {}
    ~TestDoor() override { CloseAll(); }
    std::shared_ptr<Connection> Make(Socket socket, ConnectionPass) override {
      return std::make_shared<TestConnection>(*this, std::move(socket));
    }

    ConnectionTest& test;
  };

  void Accept(Socket socket) override { door_->Accept(std::move(socket), nullptr); }
  void Expire() override {}
  double OpenConnections() {
    constexpr std::string_view kName = "\ntocsin_test_connections ";
    const std::string text = metrics_.RenderPrometheus();
    return std::stod(text.substr(text.find(kName) + kName.size()));
  }

  std::function<void(Connection&)> start = [](Connection&) {};
  std::function<void()> on_close = [] {};
  bool late = false;
  size_t timed_out = 0;
  metrics::Registry metrics_;
  Budget budget_{4 << 20, metrics_};
  std::unique_ptr<TestDoor> door_ = std::make_unique<TestDoor>(*this, loop_, budget_, metrics_);
};

TEST_F(ConnectionTest, OneWhoseCloseThrowsAfterItsHandlerIsClosed) {
  start = [](Connection&) { throw std::runtime_error("thrown"); };
  on_close = [] { throw std::bad_alloc(); };
  auto client = Connect();
  EXPECT_TRUE(IsClosed(client));
  EXPECT_EQ(OpenConnections(), 0);
  EXPECT_EQ(door_->exceptions(), 2U);
}

TEST_F(ConnectionTest, OneWhoseCloseThrowsIsClosed) {
  start = [](Connection& connection) { connection.Close(); };
  on_close = [] { throw 1; };
  auto client = Connect();
  EXPECT_TRUE(IsClosed(client));
  EXPECT_EQ(OpenConnections(), 0);
  EXPECT_EQ(door_->exceptions(), 1U);
}

TEST_F(ConnectionTest, ADoorEndsWhoseConnectionsThrow) {
  on_close = [] { throw std::bad_alloc(); };
  auto client = Connect();
  EXPECT_FALSE(IsClosed(client));
  door_.reset();
  EXPECT_TRUE(IsClosed(client));
}

TEST_F(ConnectionTest, AnExceptionThatCannotBeLoggedEndsItsConnectionAlone) {
  start = [](Connection&) { throw Nameless(); };
  auto client = Connect();
  EXPECT_TRUE(IsClosed(client));
  EXPECT_EQ(door_->exceptions(), 1U);
}

TEST_F(ConnectionTest, ManyThatAreLateTogetherTakeSeveralTurns) {
  constexpr size_t kMany = 3 * TurnShare::kItems;
  std::vector<Client> clients;
  for (size_t i = 0; i < kMany; ++i) clients.push_back(Connect());
  late = true;
  door_->Expire();
  EXPECT_GE(timed_out, 1U);
  EXPECT_LE(timed_out, TurnShare::kItems);
  Settle();
  EXPECT_EQ(timed_out, kMany);
}

}  // namespace
}  // namespace tocsin::net
