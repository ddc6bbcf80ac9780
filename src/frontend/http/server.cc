#include "frontend/http/server.h"

#include "frontend/http/encode.h"
#include "frontend/http/session.h"

namespace tocsin::http {
namespace {

constexpr Millis kTick{1'000};  // how late a deadline may be noticed

}  // namespace

std::string RefusalText(size_t connections_max) {
  const std::string body = EncodeError(
      {Code::kOverloaded, fmt::format("the server has {} connections open, limits.connections", connections_max), {}});
  return fmt::format(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n{}",
      body.size(), body);
}

Server::Server(const Context& context, const Router& router, net::Budget& budget, net::AsioLoop& loop, Options options)
    : context_(context), router_(router), budget_(budget), loop_(loop), options_(options), tick_(loop.io()) {
  connections_ = context.metrics.GetGauge("tocsin_http_connections", "Open HTTP connections.");
  parked_ = context.metrics.GetGauge("tocsin_http_parked", "Long polls that wait for jobs.");
  exceptions_ = net::ExceptionCounter(context.metrics, "http");
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
  Tick();
}

Server::~Server() {
  const auto sessions = std::exchange(sessions_, {});
  for (const auto& [session, owned] : sessions) session->Close();
}

void Server::Accept(net::Socket socket, net::ConnectionPass pass) {
  if (draining()) return;
  const auto session = std::make_shared<Session>(*this, std::move(socket), std::move(pass));
  sessions_.emplace(session.get(), session);
  connections_->Add(1);
  session->Guard([&] { session->Start(); });
}

void Server::Remove(Session& session) {
  connections_->Add(-1);
  sessions_.erase(&session);
  TellIfDrained();
}

void Server::Record(size_t route, int status, std::chrono::nanoseconds took) {
  RouteFigures& figures = figures_[route];
  figures.by_class[static_cast<size_t>(status) / 100]->Add();
  figures.seconds->Record(took);
}

void Server::Admit(std::shared_ptr<const auth::TokenSet> tokens) {
  tokens_ = std::move(tokens);
  const auto sessions = sessions_;  // one that is answered may remove itself
  for (const auto& [session, owned] : sessions) session->Guard([&] { session->TokensChanged(); });
}

void Server::Drain(Task done) {
  drained_ = std::move(done);
  const auto sessions = sessions_;  // closing one removes it
  for (const auto& [session, owned] : sessions) session->Guard([&] { session->Drain(); });
  TellIfDrained();
}

void Server::TellIfDrained() {
  if (!draining() || !sessions_.empty()) return;
  tick_.cancel();
  loop_.Post([this] {
    if (Task done = std::exchange(drained_, [] {})) done();
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
  std::vector<std::shared_ptr<Session>> expired;
  for (const auto& [session, owned] : sessions_) {
    if (session->Expired(now)) expired.push_back(owned);
  }
  for (const auto& session : expired) session->Guard([&] { session->TimeOut(); });
}

Error Server::NoRoom() const {
  return {Code::kOverloaded,
          fmt::format("the requests and answers under way take up the {} bytes that they may take together; try again",
                      budget_.bytes_max()),
          {}};
}

}  // namespace tocsin::http
