#include "frontend/resp/server.h"

#include <boost/asio/post.hpp>

#include "frontend/resp/session.h"

namespace tocsin::resp {
namespace {

constexpr std::chrono::microseconds kTurnTime{250};
constexpr std::chrono::microseconds kSliceTime{500};

}  // namespace

std::string RefusalText(size_t connections_max) {
  std::string text;
  Writer(text, Protocol::kResp2).Fail(net::TooManyConnections(connections_max));
  return text;
}

uint64_t CommandTimes::Count() const {
  uint64_t count = 0;
  for (const auto& histogram : histograms_) {
    if (const auto* known = histogram.load(std::memory_order_acquire)) count += known->Read().count;
  }
  return count;
}

metrics::Histogram* CommandTimes::Make(metrics::Registry& metrics, const Command& command) {
  auto made = metrics.GetHistogram("tocsin_resp_command_seconds",
                                   "From a whole command to its reply; long polls with their wait.",
                                   {{"command", std::string(command.name)}});
  metrics::Histogram* const histogram = made.get();  // the registry gives every shard the same one
  const std::lock_guard lock(mutex_);
  made_.push_back(std::move(made));
  histograms_[IndexOf(command)].store(histogram, std::memory_order_release);
  return histogram;
}

Server::Server(const Context& context, net::Budget& budget, net::AsioLoop& loop, Options options)
    : Door("resp", loop, budget, context.metrics), context_(context), options_(options) {
  dropped_ =
      context.metrics.GetCounter("tocsin_resp_dropped_total", "RESP connections dropped because they spoke HTTP.");
}

void Server::CountErrors(Code code, size_t times) {
  // What never happened has no series.
  std::shared_ptr<metrics::Counter>& counter = errors_[static_cast<size_t>(code)];
  if (!counter) {
    counter = context_.metrics.GetCounter("tocsin_resp_errors_total", "Commands answered with an error.",
                                          {{"code", std::string(RowOf(code).name)}});
  }
  counter->Add(times);
}

std::shared_ptr<net::Connection> Server::Make(net::Socket socket, net::ConnectionPass pass) {
  return std::make_shared<Session>(*this, std::move(socket), std::move(pass),
                                   context_.connection_ids->fetch_add(1, std::memory_order_relaxed) + 1);
}

void Server::Wake(Session& session) {
  if (session.woken_ || !session.open()) return;
  session.woken_ = true;
  if (&session != served_) Queue(session);
}

void Server::Queue(Session& session) {
  if (!std::exchange(turn_posted_, true)) boost::asio::post(loop().io(), [this] { Turn(); });
  (session.light_ ? light_ : heavy_).push_back(session.Share());
}

void Server::Serve(Session& session) { spent_ < kSliceTime ? Run(session) : Wake(session); }

void Server::Run(Session& session) {
  const bool queued = session.woken_;
  const auto from = loop().clock().IoNow();
  turn_end_ = from + kTurnTime;
  served_ = &session;
  session.Guard([&] { session.Turn(); });
  served_ = nullptr;
  const auto took = loop().clock().IoNow() - from;
  spent_ += took;
  session.light_ = took < kTurnTime;
  if (session.woken_ && !queued) Queue(session);  // it woke itself
}

void Server::Turn() {
  const net::Turn turn;
  turn_posted_ = false;
  spent_ = {};
  const auto serve = [this](auto& queue) {
    const auto session = std::move(queue.front());
    queue.pop_front();
    session->woken_ = false;
    Run(*session);
  };
  // Those that wake from here on have their turn the next time.
  for (size_t i = light_.size(); i > 0 && spent_ < kSliceTime; --i) serve(light_);
  const size_t heavy = heavy_.size();
  for (size_t i = 0; i < heavy && (i == 0 || spent_ < kSliceTime); ++i) serve(heavy_);
  const bool more = !light_.empty() || !heavy_.empty();
  if (more && !std::exchange(turn_posted_, true)) boost::asio::post(loop().io(), [this] { Turn(); });
}

void Server::Admit(std::shared_ptr<const auth::TokenSet> tokens) {
  tokens_ = std::move(tokens);
  ForEach(&net::Connection::TokensChanged);
}

}  // namespace tocsin::resp
