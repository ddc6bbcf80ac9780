#include "frontend/resp/server.h"

#include <boost/asio/post.hpp>

#include "frontend/resp/session.h"

namespace tocsin::resp {
namespace {

constexpr Millis kTick{1'000};  // how late a deadline may be noticed

}  // namespace

std::string RefusalText(size_t connections_max) {
  std::string text;
  Writer(text, Protocol::kResp2)
      .Fail({Code::kOverloaded,
             fmt::format("the server has {} connections open, limits.connections", connections_max),
             {}});
  return text;
}

Server::Server(const Context& context, net::Budget& budget, net::AsioLoop& loop, Options options)
    : context_(context), budget_(budget), loop_(loop), options_(options), tick_(loop.io()) {
  metrics::Registry& metrics = context.metrics;
  connections_ = metrics.GetGauge("tocsin_resp_connections", "Open RESP connections.");
  parked_ = metrics.GetGauge("tocsin_resp_parked", "JOB.RESERVE commands that wait for jobs.");
  dropped_ = metrics.GetCounter("tocsin_resp_dropped_total", "RESP connections dropped because they spoke HTTP.");
  exceptions_ = net::ExceptionCounter(metrics, "resp");
  for (const Command* command : Commands()) {
    seconds_[command] = metrics.GetHistogram("tocsin_resp_command_seconds",
                                             "From a whole command to its reply; long polls with their wait.",
                                             {{"command", std::string(command->name)}});
  }
  for (const ErrorRow& row : ErrorTable()) {
    errors_.push_back(metrics.GetCounter("tocsin_resp_errors_total", "Commands answered with an error.",
                                         {{"code", std::string(row.name)}}));
  }
  Tick();
}

Server::~Server() {
  const auto sessions = std::exchange(sessions_, {});
  for (const auto& [session, owned] : sessions) session->Close();
}

void Server::Accept(net::Socket socket, net::ConnectionPass pass) {
  if (draining()) return;
  const auto session = std::make_shared<Session>(*this, std::move(socket), std::move(pass),
                                                 context_.connection_ids->fetch_add(1, std::memory_order_relaxed) + 1);
  sessions_.emplace(session.get(), session);
  connections_->Add(1);
  session->Guard([&] { session->Start(); });
}

void Server::Remove(Session& session) {
  connections_->Add(-1);
  sessions_.erase(&session);
  TellIfDrained();
}

void Server::Wake(Session& session) {
  if (session.woken_ || !session.open()) return;
  session.woken_ = true;
  if (woken_.empty()) boost::asio::post(loop_.io(), [this] { Turn(); });
  woken_.push_back(session.Share());
}

void Server::Turn() {
  turning_.swap(woken_);
  for (const auto& session : turning_) {
    session->woken_ = false;
    session->Guard([&] { session->Turn(); });
  }
  turning_.clear();
}

void Server::Record(const Command& command, size_t times, std::chrono::nanoseconds took) {
  seconds_.find(&command)->second->Record(took, times);
}

uint64_t Server::CommandsAnswered() const {
  uint64_t answered = 0;
  for (const auto& [command, seconds] : seconds_) answered += seconds->Read().count;
  return answered;
}

void Server::Admit(std::shared_ptr<const auth::TokenSet> tokens) {
  tokens_ = std::move(tokens);
  const auto sessions = sessions_;  // one that fails is removed
  for (const auto& [session, owned] : sessions) session->Guard([&] { session->TokensChanged(); });
}

void Server::Drain(Task done) {
  draining_ = true;
  drained_ = std::move(done);
  const auto sessions = sessions_;  // closing one removes it
  for (const auto& [session, owned] : sessions) session->Guard([&] { session->Drain(); });
  TellIfDrained();
}

void Server::TellIfDrained() {
  if (!draining() || !sessions_.empty()) return;
  tick_.cancel();
  loop_.Post([this] {
    if (Task done = std::exchange(drained_, nullptr)) done();
  });
}

void Server::Tick() {
  tick_.expires_after(kTick);
  tick_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    Expire();
    Tick();
  });
}

void Server::Expire() {
  const auto now = loop_.clock().IoNow();
  std::vector<std::shared_ptr<Session>> late;  // closing one removes it
  for (const auto& [session, owned] : sessions_) {
    if (session->IsLate(now)) late.push_back(owned);
  }
  for (const auto& session : late) session->Guard([&] { session->TimeOut(); });
}

Error Server::NoRoom() const {
  return {Code::kOverloaded,
          fmt::format("the requests and answers under way take up the {} bytes that they may take together; try again",
                      budget_.bytes_max()),
          {}};
}

}  // namespace tocsin::resp
