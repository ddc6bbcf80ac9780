// Connection: one keep-alive connection to a webhook's receiver, with one request at a time. It looks the name up,
// connects only to addresses that the address guard allows, makes the TLS handshake if the URL is https, sends the
// request and reads the answer. Owned by a WebhookSink, on the thread of its loop; handlers under way keep it alive
// after Close, and do nothing then.
//
// Invariants: each Send ends in one OnEnded, never within the call, unless Close comes first. An idle connection always
// has a read under way: anything that the receiver sends unasked, or its close, ends the connection.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "net/asio_loop.h"
#include "net/places.h"
#include "sinks/webhook/answer.h"
#include "sinks/webhook/lookup.h"
#include "sinks/webhook/target.h"
#include "spi/sink.h"

namespace tocsin::webhook {

class WebhookSink;

using TimePoint = std::chrono::steady_clock::time_point;

/// One call of Sink::Deliver.
struct Handover {
  std::shared_ptr<const JobBatch> batch;
  Sink::Answer answer;
};

struct Item {
  std::shared_ptr<Handover> handover;
  size_t index = 0;

  const JobView& job() const { return handover->batch->jobs[index]; }
};

/// The bytes to send, and their jobs with the callbacks that wait for outcomes. Shared between the sink and the writes
/// that send it: an answer may end the request before its last byte is sent.
struct Request {
  std::vector<Item> items;
  std::string head;
  std::string list;      // the body of a batch
  bool batched = false;  // if not, the body is the payload of its only job
  TimePoint deadline{};
  bool again = false;  // sent a second time: the first connection proved to be dead

  std::string_view body() const { return batched ? std::string_view(list) : items.front().job().payload; }
};

/// What all connections of a sink share. It outlives those that are not closed.
struct Route {
  net::AsioLoop& loop;
  Target target;
  const Networks& allow;
  NameLookup& lookup;
  boost::asio::ssl::context* tls;  // with https
  net::Places& places;             // of all sinks of the node
  size_t first_address = 0;        // of the name's addresses, which to try first: the next one after a failure
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  struct Ending {
    std::optional<Answer> answer;  // empty: `error` says why
    std::string error;
    bool reusable = false;
    bool unsent = false;   // there was never a connection to send the request on
    bool stale = false;    // lost before the first byte of this answer, after it had served earlier requests
    bool no_file = false;  // the system had no open file left for the socket: nothing was sent
  };

  /// `socket_place`: for its socket, until Close.
  Connection(Route& route, WebhookSink& sink, net::Places::Place socket_place);

  void Send(std::shared_ptr<const Request> request);
  /// The request has timed out.
  void Expire();
  /// Ends the request now: with the answer if its status is known, else with `why`.
  void Abandon(std::string_view why);
  /// The sink is not called any more.
  void Close();

  const Request& request() const { return *request_; }  // while it is busy
  /// Of the request, or of the look-up of the name if that is earlier. While it is busy.
  TimePoint deadline() const {
    return stage_ == Stage::kLookup ? std::min(lookup_by_, request_->deadline) : request_->deadline;
  }
  std::shared_ptr<const Request> TakeRequest() { return std::move(request_); }
  /// For the connection that replaces this one, which is closed next.
  net::Places::Place TakeSocketPlace() { return std::move(socket_place_); }
  bool busy() const { return busy_; }

  // Kept by the sink.
  size_t place = 0;  // in its list
  TimePoint made_at{};
  TimePoint idle_since{};

 private:
  using Tcp = boost::asio::ip::tcp;
  using Executor = boost::asio::io_context::executor_type;
  using Socket = boost::asio::basic_stream_socket<Tcp, Executor>;
  using ErrorCode = boost::system::error_code;
  enum class Stage : uint8_t { kNew, kLookup, kConnect, kHandshake, kReady };

  void Open();
  void Found(const Result<Addresses>& found);
  void Connected(const ErrorCode& error);
  bool NoFileIsLeft();
  void HandshakeDone(const ErrorCode& error);
  void Begin();
  void Write();
  void Read();
  void OnRead(const ErrorCode& error, size_t bytes);
  void Proceed(AnswerReader::State state, std::string_view lost);
  void Finish();
  void Fail(std::string_view why);

  Route& route_;
  WebhookSink& sink_;
  net::Places::Place socket_place_;
  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
  Stage stage_ = Stage::kNew;
  TimePoint lookup_by_{};
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
