#include "frontend/resp/server.h"

#include <boost/asio/post.hpp>

#include "frontend/resp/session.h"

namespace tocsin::resp {

std::string RefusalText(size_t connections_max) {
  std::string text;
  Writer(text, Protocol::kResp2).Fail(net::TooManyConnections(connections_max));
  return text;
}

Server::Server(const Context& context, net::Budget& budget, net::AsioLoop& loop, Options options)
    : Door("resp", loop, budget, context.metrics), context_(context), options_(options) {
  metrics::Registry& metrics = context.metrics;
  dropped_ = metrics.GetCounter("tocsin_resp_dropped_total", "RESP connections dropped because they spoke HTTP.");
  for (const Command& command : Commands()) {
    seconds_[&command] = metrics.GetHistogram("tocsin_resp_command_seconds",
                                              "From a whole command to its reply; long polls with their wait.",
                                              {{"command", std::string(command.name)}});
  }
  for (const ErrorRow& row : ErrorTable()) {
    errors_.push_back(metrics.GetCounter("tocsin_resp_errors_total", "Commands answered with an error.",
                                         {{"code", std::string(row.name)}}));
  }
}

std::shared_ptr<net::Connection> Server::Make(net::Socket socket, net::ConnectionPass pass) {
  return std::make_shared<Session>(*this, std::move(socket), std::move(pass),
                                   context_.connection_ids->fetch_add(1, std::memory_order_relaxed) + 1);
}

void Server::Wake(Session& session) {
  if (session.woken_ || !session.open()) return;
  session.woken_ = true;
  if (woken_.empty()) boost::asio::post(loop().io(), [this] { Turn(); });
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
  ForEach(&net::Connection::TokensChanged);
}

}  // namespace tocsin::resp
