#include "frontend/http/server.h"

#include <boost/asio/post.hpp>

#include "frontend/http/encode.h"
#include "frontend/http/session.h"

namespace tocsin::http {

constexpr std::chrono::microseconds kSliceTime{500};

namespace {

std::string LastAnswer(std::string_view status, const Error& error) {
  const std::string body = EncodeError(error);
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
      body.size(), body);
}

}  // namespace

std::string RefusalText(size_t connections_max) {
  return LastAnswer("503 Service Unavailable", net::TooManyConnections(connections_max));
}

Server::Server(const Context& context, const Router& router, net::Budget& budget, net::AsioLoop& loop, Options options)
    : Door("http", loop, budget, context.metrics), context_(context), router_(router), options_(options) {
  figures_.resize(router.routes().size() + 1);
}

std::shared_ptr<net::Connection> Server::Make(net::Socket socket, net::ConnectionPass pass) {
  return std::make_shared<Session>(*this, std::move(socket), std::move(pass));
}

std::string Server::PlainAnswer() const {
  return LastAnswer("400 Bad Request",
                    {Code::kInvalidArgument, "this port speaks TLS: begin the URL with https://", {}});
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
  const size_t status_class = static_cast<size_t>(status) / 100;
  if (figures.by_class[status_class] == nullptr) MakeFigures(route, status_class);
  figures.by_class[status_class]->Add();
  figures.seconds->Record(took);
}

void Server::MakeFigures(size_t route, size_t status_class) {
  const auto& routes = router_.routes();
  const bool known = route < routes.size();
  metrics::Labels labels{{"method", known ? std::string(boost::beast::http::to_string(routes[route].method)) : "any"},
                         {"route", known ? std::string(routes[route].pattern) : "none"}};
  RouteFigures& figures = figures_[route];
  figures.seconds = context_.metrics.GetHistogram(
      "tocsin_http_request_seconds", "From a whole request to its answer; long polls with their wait.", labels);
  labels.push_back({"status", fmt::format("{}xx", status_class)});
  figures.by_class[status_class] =
      context_.metrics.GetCounter("tocsin_http_requests_total", "Requests answered.", labels);
}

void Server::Admit(std::shared_ptr<const auth::TokenSet> tokens) {
  tokens_ = std::move(tokens);
  ForEach(&net::Connection::TokensChanged);
}

}  // namespace tocsin::http
