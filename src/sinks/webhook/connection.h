// Connection: one keep-alive connection to a webhook's receiver, with one request at a time. It looks the name up,
// connects to addresses that the guard lets pass and to no other, shakes hands where the URL says https, sends, and
// reads the answer. Owned by a WebhookSink, whose calls and whose Owner methods are on the loop's thread; handlers
// under way keep it alive after its Close, and do nothing then.
//
// Invariants: each Send ends in one Ended, never within the call, unless Close comes first. While it is idle a read is
// under way all the time: whatever a receiver says or does unasked ends the connection.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "net/asio_loop.h"
#include "sinks/webhook/answer.h"
#include "sinks/webhook/lookup.h"
#include "sinks/webhook/request.h"
#include "sinks/webhook/target.h"

namespace tocsin::webhook {

/// What all connections of a sink have in common. What it points to outlives them, but for what is closed.
struct Route {
  net::AsioLoop& loop;
  Target target;
  const Networks& allow;
  NameLookup& lookup;
  boost::asio::ssl::context* tls;  // of https
  size_t first_address = 0;        // of those that a name has: another one after each that did not work
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  struct Ending {
    std::optional<Answer> answer;  // nothing: `trouble` says why
    std::string trouble;
    bool reusable = false;
    bool unheard = false;  // it had answered before, and was lost before the first byte of this answer
  };
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void Ended(Connection& connection, const Ending& ending) = 0;
    /// It was idle, and is of no use any more.
    virtual void Lost(Connection& connection) = 0;
  };

  Connection(Route& route, Owner& owner);

  void Send(std::shared_ptr<const Request> request);
  /// The request's time is over.
  void Expire();
  /// The same for a reason of the owner's.
  void Abandon(std::string_view why);
  /// Nothing is called any more.
  void Close();

  const Request& request() const { return *request_; }  // while it is busy
  std::shared_ptr<const Request> TakeRequest() { return std::move(request_); }
  bool busy() const { return busy_; }

  size_t place = 0;        // in the owner's list
  TimePoint idle_since{};  // the owner's

 private:
  using Tcp = boost::asio::ip::tcp;
  using Executor = boost::asio::io_context::executor_type;
  using Socket = boost::asio::basic_stream_socket<Tcp, Executor>;
  using ErrorCode = boost::system::error_code;
  enum class Stage : uint8_t { kNew, kLookup, kConnect, kHandshake, kReady };

  void Open();
  void Found(const Result<Addresses>& found);
  void Connected(const ErrorCode& error);
  void Shake();
  void Shaken(const ErrorCode& error);
  void Begin();
  void Write();
  void Read();
  void Take(const ErrorCode& error, size_t bytes);
  void Judge(AnswerReader::State state, std::string_view trouble);
  void Finish();
  void Fail(std::string_view why);

  Route& route_;
  Owner* owner_;
  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
  Stage stage_ = Stage::kNew;
  std::vector<Tcp::endpoint> endpoints_;
  std::shared_ptr<const Request> request_;
  AnswerReader reader_;
  std::array<char, 4096> buffer_;
  bool busy_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool served_ = false;  // a request has been answered
  bool closed_ = false;
};

}  // namespace tocsin::webhook
