// Call: one request on its way to its handler, and Answer: the handler's promise to reply exactly once, now or later.
// Both belong to the loop of the request's connection.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/parser.hpp>

#include "api/verbs.h"
#include "base/clock.h"
#include "base/result.h"
#include "core/node_info.h"
#include "core/service.h"
#include "frontend/http/fields.h"
#include "frontend/http/router.h"
#include "metrics/registry.h"
#include "metrics/scraper.h"
#include "net/asio_loop.h"
#include "net/connection.h"

namespace tocsin::http {

class Session;

struct Response {
  int status = 200;
  std::string body;
  std::string_view content_type = "application/json";
  std::string allow;     // of a 405: the methods that the path takes
  bool gzipped = false;  // the body is packed already
};

Response ErrorResponse(const Error& error);

/// What the handlers work with; owned by the composition root.
struct Context {
  Service& service;
  const Clock& clock;
  VirtualClock* virtual_clock;  // null with the real clock
  metrics::Registry& metrics;
  metrics::Scraper& scraper;
  NodeInfo node = {};
};

/// Keeps the connection's state alive until it is used, also when the client has gone.
class Answer {
 public:
  explicit Answer(std::shared_ptr<Session> session) : session_(std::move(session)) {}

  /// Whether the client still waits for it.
  bool Wanted() const;
  /// kOverloaded if no memory is left for an answer of this size. Send would say so too, but that is too late if
  /// something was done: a call that changes anything, and whose answer may be over net::Budget::kSmallBytes, asks
  /// before.
  Status MakeRoom(size_t bytes);
  void Send(Response response);
  void Fail(const Error& error) { Send(ErrorResponse(error)); }
  /// The callback of a call to the service: answers an error, or runs `work(answer, value)`. Exceptions end this
  /// connection alone.
  template <class F>
  auto Then(F work) {
    return net::GuardedAnswer(std::move(*this), [work = std::move(work)](Answer& answer, auto result) mutable {
      result ? work(answer, *result) : answer.Fail(OnTheWire(std::move(result).error()));
    });
  }
  std::shared_ptr<net::Connection> connection() const;

 private:
  std::shared_ptr<Session> session_;
};

struct Call {
  const api::Verb* verb;
  const Context& context;
  net::AsioLoop& loop;
  boost::json::parser& parser;
  std::vector<std::string> params;  // of the path
  Query query;                      // with the names that the verb takes, and no others
  std::string_view body;            // lives until the handler returns
  const auth::Grant* grant;         // so does this; null if everybody may do everything
  Answer answer;
  Session& session;
};

}  // namespace tocsin::http
