#include "frontend/http/server.h"

#include <boost/asio/post.hpp>

#include "frontend/http/encode.h"
#include "frontend/http/session.h"

namespace tocsin::http {

constexpr std::chrono::microseconds kSliceTime{500};

std::string RefusalText(size_t connections_max) {
  const std::string body = EncodeError(net::TooManyConnections(connections_max));
  return fmt::format(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n{}",
      body.size(), body);
}

Server::Server(const Context& context, const Router& router, net::Budget& budget, net::AsioLoop& loop, Options options)
    : Door("http", loop, budget, context.metrics), context_(context), router_(router), options_(options) {
  for (size_t i = 0; i <= router.routes().size(); ++i) {
    const bool known = i < router.routes().size();
    const std::string route = known ? std::string(router.routes()[i].pattern) : "none";
    const std::string method = known ? std::string(boost::beast::http::to_string(router.routes()[i].method)) : "any";
    RouteFigures& figures = figures_.emplace_back();
    figures.seconds = context.metrics.GetHistogram("tocsin_http_request_seconds",
                                                   "From a whole request to its answer; long polls with their wait.",
                                                   {{"method", method}, {"route", route}});
    for (size_t status_class = 2; status_class < figures.by_class.size(); ++status_class) {
      figures.by_class[status_class] = context.metrics.GetCounter(
          "tocsin_http_requests_total", "Requests answered.",
          {{"method", method}, {"route", route}, {"status", fmt::format("{}xx", status_class)}});
    }
  }
}

std::shared_ptr<net::Connection> Server::Make(net::Socket socket, net::ConnectionPass pass) {
  return std::make_shared<Session>(*this, std::move(socket), std::move(pass));
}

void Server::Serve(std::shared_ptr<Session> session) {
  if (!std::exchange(turn_posted_, true)) boost::asio::post(loop().io(), [this] { Turn(); });
  if (!waiting_.empty() || spent_ >= kSliceTime) return waiting_.push_back(std::move(session));
  Run(*session);
}

void Server::Run(Session& session) {
  const auto from = loop().clock().IoNow();
  session.Guard([&] { session.Run(); });
  spent_ += loop().clock().IoNow() - from;
}

void Server::Turn() {
  turn_posted_ = false;
  spent_ = {};
  while (!waiting_.empty() && spent_ < kSliceTime) {
    const auto session = std::move(waiting_.front());
    waiting_.pop_front();
    Run(*session);
  }
  if (!waiting_.empty() && !std::exchange(turn_posted_, true)) boost::asio::post(loop().io(), [this] { Turn(); });
}

void Server::Record(size_t route, int status, std::chrono::nanoseconds took) {
  RouteFigures& figures = figures_[route];
  figures.by_class[static_cast<size_t>(status) / 100]->Add();
  figures.seconds->Record(took);
}

void Server::Admit(std::shared_ptr<const auth::TokenSet> tokens) {
  tokens_ = std::move(tokens);
  ForEach(&net::Connection::TokensChanged);
}

}  // namespace tocsin::http
