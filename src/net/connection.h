// Connection: the base of both doors' sessions, and Door: the base of their servers, with the connections of one shard.
//
// Threads: a Door and its connections belong to one loop, whose thread alone uses them. A Door is made before the loop
// runs and destroyed after it has stopped.
//
// Ownership: the Door owns a connection until it is closed; after that, what is still under way for it (a read, a
// write, an answer).
//
// TLS: if its Door speaks it, a connection is started after the handshake, which connection_tls.cc does. Sessions read
// and write through the functions below; on a connection without TLS these are the socket's own.
//
// Invariant: no exception leaves a connection. Whatever enters one (Asio, a posted task, its Door, an answer to one of
// its calls) does so through Guard or Handler. An exception ends that connection alone, also one of OnClose.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/worker.h"
#include "metrics/registry.h"
#include "net/asio_loop.h"
#include "net/budget.h"
#include "net/listener.h"
#include "net/tls_transport.h"
#include "net/turns.h"

namespace tocsin::net {

class Door;

/// When a connection has to have done something. A transfer may take long as long as it moves: its deadline begins
/// again with every kMovedBytes. If it is in a hurry, it has to move an eighth of what it holds in kHurriedTime, and
/// kMovedBytes at least: however large it is, it ends within eight times that.
class Deadline {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr size_t kMovedBytes = 64 << 10;
  static constexpr Millis kMovedTime{60'000};  // for each of them
  static constexpr Millis kHurriedTime{
      5'000};  // for each step of a large transfer while the budget is tight for others
  static constexpr size_t kHurriedSteps = 8;

  void Set(TimePoint at) {
    at_ = step_at_ = at;
    moved_ = stepped_ = 0;
  }
  /// Sets it, unless it is set and fewer than kMovedBytes have moved since. `held`: the memory of the transfer.
  void Extend(TimePoint at, size_t held) {
    if (!IsSet()) return Set(at);
    if (moved_ >= kMovedBytes) {
      at_ = at;
      moved_ = 0;
    }
    if (stepped_ >= std::max(kMovedBytes, held / kHurriedSteps)) {
      step_at_ = at;
      stepped_ = 0;
    }
  }
  /// Bytes of the transfer arrived or left.
  void Moved(size_t bytes) {
    moved_ += bytes;
    stepped_ += bytes;
  }
  void Clear() { Set(TimePoint::max()); }
  /// The time that is left does not run until Resume: the connection waits for the server.
  void Pause(TimePoint now) {
    left_ = std::exchange(at_, TimePoint::max()) - now;
    step_left_ = std::exchange(step_at_, TimePoint::max()) - now;
  }
  void Resume(TimePoint now) {
    at_ = now + left_;
    step_at_ = now + step_left_;
  }
  bool IsSet() const { return at_ != TimePoint::max(); }
  bool HasPassed(TimePoint now) const { return now >= at_; }
  /// The same for one that is in a hurry.
  bool HasPassedHurried(TimePoint now) const { return HasPassed(now) || now + (kMovedTime - kHurriedTime) >= step_at_; }

 private:
  TimePoint at_ = TimePoint::max();
  TimePoint step_at_ = TimePoint::max();  // kMovedTime after the last step
  size_t moved_ = 0;                      // since at_ was set
  size_t stepped_ = 0;                    // since step_at_ was
  TimePoint::duration left_{};            // while it is paused
  TimePoint::duration step_left_{};
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Door& door, Socket socket, ConnectionPass pass);
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  virtual void Start() = 0;
  /// The server stops: closes now, or after the answers that are under way.
  virtual void Drain() = 0;
  /// Who may call has changed. A reserve that waits and is no longer allowed is answered empty: no job leaves for it.
  virtual void TokensChanged() = 0;
  /// Whether TimeOut is to be called.
  virtual bool IsLate(Deadline::TimePoint now) const = 0;
  virtual void TimeOut() = 0;

  void Close();
  /// Closes, and counts it: there is no room for what would have to wait for the client.
  void Cut();
  bool open() const { return open_; }
  /// The client's address and port; "?" if it has gone.
  std::string Peer() const;
  /// Whether the connection is encrypted.
  bool secure() const { return tls_ != nullptr; }
  /// The subject of the client's verified certificate; empty if it showed none.
  std::string_view certificate_subject() const { return tls_ ? std::string_view(tls_->subject()) : std::string_view(); }

  /// Runs `work`. If that throws, the exception is logged and counted, and the connection is closed when the outermost
  /// Guard ends: the code between the two may still use what Close gives back.
  template <class F>
  void Guard(F&& work) noexcept {
    const Turn turn;
    const bool outermost = !std::exchange(guarded_, true);
    try {
      std::forward<F>(work)();
    } catch (...) {
      Caught();
    }
    if (!outermost) return;
    guarded_ = false;
    if (failed_) CloseFailed();
  }

  /// `work` as a handler of Asio or a task of the loop: guarded, and keeps the connection alive.
  template <class F>
  auto Handler(F work) {
    return [self = shared_from_this(), work = std::move(work)](auto&&... args) mutable {
      self->Guard([&] { work(std::forward<decltype(args)>(args)...); });
    };
  }

 protected:
  /// Gives back what the connection holds elsewhere: a reserve that waits, a buffer.
  virtual void OnClose() = 0;

  // The socket's functions, or those of TLS. The socket does not block.
  size_t ReadSome(boost::asio::mutable_buffer into, boost::system::error_code& error) {
    return tls_ ? tls_->Read(into, error) : socket_.read_some(into, error);
  }
  /// One buffer, or an array of two. What is not written has to be written next, before anything else.
  template <class Buffers>
  size_t WriteSome(const Buffers& bytes, boost::system::error_code& error) {
    return tls_ ? tls_->Write(bytes, error) : socket_.write_some(bytes, error);
  }
  /// Calls `work` with an error code when there is something to read.
  template <class F>
  void AwaitReadable(F work) {
    if (tls_ && tls_->HasUnread()) {
      return boost::asio::post(socket_.get_executor(),
                               Handler([work = std::move(work)]() mutable { work(boost::system::error_code()); }));
    }
    if (tls_) HoldTls();
    const bool writes_first = tls_ && tls_->ReadsWhenWritable();
    socket_.async_wait(writes_first ? Socket::wait_write : Socket::wait_read, Handler(std::move(work)));
  }
  /// The same when something can be written.
  template <class F>
  void AwaitWritable(F work) {
    if (tls_) HoldTls();
    socket_.async_wait(Socket::wait_write, Handler(std::move(work)));
  }

  /// Ends after the last answer: stops sending, and drops what the client still sends until it closes too. Closing at
  /// once with unread bytes would send a reset, which may overtake the answer.
  void Linger();
  bool lingering() const { return linger_deadline_.IsSet(); }
  /// Whether the client closed its sending side, also if unread bytes are before that end.
  bool PeerHasClosed() const;
  Deadline::TimePoint After(Millis time) const;
  /// Whether the deadline of a transfer has passed. It has to hurry if it is large and others need memory.
  bool TransferIsLate(const Deadline& deadline, Deadline::TimePoint now, const Charge& charge) const;
  /// For a caller without an access token.
  const Account& client_account() const { return client_account_; }

  Socket socket_;

 private:
  friend class Door;

  /// Logs and counts the exception that is being handled.
  void Caught() noexcept;
  void CloseFailed() noexcept;
  void CloseSocket();
  void Discard();

  // The handshake.
  void BeginTls();
  void AwaitHello();
  void OnHello(const boost::system::error_code& error);
  /// Waits until so many bytes have arrived, without taking memory for them.
  void AwaitBytes(size_t bytes);
  void RefusePlain();
  /// When the whole first message is here, or the kernel cannot tell. Waits if there is no room for one more handshake.
  void BeginHandshake();
  void StepHandshake();
  void OnHandshake(TlsTransport::Step step);
  /// `result`: as in the metric.
  void FailHandshake(const char* result, std::string_view why);
  /// Closes if there is no room for what OpenSSL keeps meanwhile.
  void HoldTls();
  void TimeOutHandshake();

  Door& door_;
  ConnectionPass pass_;
  std::unique_ptr<TlsTransport> tls_;  // null without TLS, and until the client has said something
  Deadline handshake_deadline_;
  Deadline::TimePoint certified_until_ = Deadline::TimePoint::max();  // when the client's certificate expires
  bool helped_ = false;  // the helper's thread has the transport and the socket
  const Account client_account_;
  Deadline linger_deadline_;
  bool open_ = true;
  bool guarded_ = false;
  bool failed_ = false;
};

class Door {
 public:
  /// `name`: as in the metrics, "http" or "resp".
  Door(const std::string& name, AsioLoop& loop, Budget& budget, metrics::Registry& metrics);
  virtual ~Door() = default;
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  void Accept(Socket socket, ConnectionPass pass);
  /// From now on new connections have to speak TLS, with this certificate.
  void SpeakTls(std::shared_ptr<const ServerTls> tls);
  /// Closes idle connections and lets the others finish what is under way; `done` runs when none is left.
  void Drain(Task done);
  /// Times out what is late: some of it now, if there is much, and the rest in later turns. Called every second; tests
  /// call it themselves.
  void Expire();

  // For connections.
  AsioLoop& loop() { return loop_; }
  Budget& budget() { return budget_; }
  bool draining() const { return draining_; }
  /// The error for a request or an answer that finds no room in the budget.
  Error NoRoom() const { return budget_.NoRoom(); }
  void CountParked(int by) { parked_->Add(by); }
  /// Reserves that wait, over all shards.
  size_t parked() const { return static_cast<size_t>(parked_->Value()); }
  /// Connections that an exception closed.
  uint64_t exceptions() const { return exceptions_->Value(); }

 protected:
  virtual std::shared_ptr<Connection> Make(Socket socket, ConnectionPass pass) = 0;
  /// What a client is told that does not speak TLS to a door that does: in clear text, as such a client reads it.
  virtual std::string PlainAnswer() const { return {}; }
  /// For the destructor of a derived class: OnClose needs that class.
  void CloseAll();
  /// Calls a method of every connection.
  void ForEach(void (Connection::*method)());

 private:
  friend class Connection;

  void Remove(Connection& connection);
  void ExpireSome();
  bool IsLate(const Connection& connection, Deadline::TimePoint now) const {
    return connection.IsLate(now) || connection.linger_deadline_.HasPassed(now) ||
           connection.handshake_deadline_.HasPassed(now) || now >= connection.certified_until_;
  }
  void CountHandshake(const char* result);
  /// Lets those go on for which there was no room.
  void ResumeHandshakes();
  void Tick();
  void TellIfDrained();

  const std::string name_;
  AsioLoop& loop_;
  Budget& budget_;
  metrics::Registry& metrics_;
  boost::asio::steady_timer tick_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::vector<std::weak_ptr<Connection>> late_;  // to be timed out, by ExpireSome
  bool expiring_ = false;                        // it is under way, or posted
  std::shared_ptr<metrics::Gauge> open_;
  std::shared_ptr<metrics::Gauge> parked_;
  std::shared_ptr<metrics::Counter> exceptions_;
  std::shared_ptr<metrics::Counter> cut_;
  bool draining_ = false;
  Task drained_;

  std::shared_ptr<const ServerTls> tls_;              // null: clear text
  std::deque<std::weak_ptr<Connection>> handshakes_;  // that wait for room
  // Signing takes up to some milliseconds, and due jobs wait for the loop's thread.
  Worker helper_{"tocsin-tls"};
};

/// The error that a connection over the limit is told.
Error TooManyConnections(size_t connections_max);

/// `work(answer, args...)` as the callback of a call to the service: guarded by the connection that it answers.
template <class Answer, class F>
auto GuardedAnswer(Answer answer, F work) {
  return [answer = std::move(answer), work = std::move(work)](auto&&... args) mutable {
    const std::shared_ptr<Connection> connection = answer.connection();
    connection->Guard([&] { work(answer, std::forward<decltype(args)>(args)...); });
  };
}

}  // namespace tocsin::net
