// Pipeline: passes a connection's commands to the service. Successive commands of one name and topic become one call (a
// run). The replies leave in the order of the commands, whichever call is answered first.
//
// Owned by its Session, on the session's loop.
//
// Invariants: a slot holds the replies of one run or one call; done slots are taken from the front. At most one run is
// open, and it is flushed before anything else is begun. A run that takes several turns of its shard is flushed with
// the command that made it so large. Nothing is begun before it is answered: that could take effect between its steps.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/service.h"
#include "core/steps.h"
#include "frontend/resp/command.h"
#include "frontend/resp/writer.h"
#include "frontend/shared/answer_room.h"
#include "net/connection.h"

namespace tocsin::resp {

class Session;

/// The replies of one run or call, in their place among those of the connection.
struct Slot {
  std::string text;
  bool done = false;
  size_t counted = 0;        // bytes of the text that are in Pipeline::ready_bytes_
  size_t request_bytes = 0;  // of the commands that it answers
  Leases leases;             // that the text hands out
};

/// The promise to fill a slot, once. Keeps the session alive, even if the client has gone.
class Answer {
 public:
  Answer(std::shared_ptr<Session> session, std::shared_ptr<Slot> slot, const Command& command, size_t commands = 1);
  Answer(Answer&&) = default;

  /// Whether the connection is still open.
  bool Wanted() const;
  /// kOverloaded if no memory is left for an answer of this size.
  Status MakeRoom(size_t bytes);
  Status MakeRoomForWhole(size_t bytes);
  shared::AnswerRoom NewRoom();
  void TakeRoom(shared::AnswerRoom& room);
  /// After Done: the jobs that it showed need no more room.
  void GiveBackRoom();
  Writer writer() { return WriterTo(slot_->text); }
  /// For a text that is made in several turns, then Put.
  Writer WriterTo(std::string& text) { return {text, protocol_}; }
  void Put(std::string text) { slot_->text = std::move(text); }
  /// They are released if the answer cannot be sent.
  void HandOut(Leases leases) { slot_->leases = std::move(leases); }
  void Done();
  void Fail(const Error& error);
  /// One of its commands is answered with this error.
  void CountError(Code code);
  /// The callback of a call to the service: answers with an error, or with what `work(answer, value)` writes.
  /// Exceptions end this connection alone.
  template <class F>
  auto Then(F work) {
    return net::GuardedAnswer(std::move(*this), [work = std::move(work)](Answer& answer, auto result) mutable {
      if (!result) return answer.Fail(result.error());
      work(answer, *result);
      answer.Done();
    });
  }
  std::shared_ptr<net::Connection> connection() const;

 private:
  std::shared_ptr<Session> session_;
  std::shared_ptr<Slot> slot_;
  const Command& command_;
  size_t commands_;  // that it answers
  Protocol protocol_;
  std::chrono::steady_clock::time_point began_;
};

/// Commands of one kind for one topic.
template <class TheRequest>
struct RunOf {
  using Request = TheRequest;
  /// One command's part of the run.
  struct Part {
    std::string_view own_id;  // JOB.SUBMIT
    size_t items = 1;
    bool many = false;  // JOB.MSUBMIT
  };
  const Command* command = nullptr;
  Request request;
  std::vector<Part> parts;
};
using SubmitRun = RunOf<SubmitRequest>;
using SettleRun = RunOf<SettleRequest>;
using AmendRun = RunOf<AmendRequest>;
using CountRun = RunOf<CountRequest>;

class Pipeline {
 public:
  explicit Pipeline(Session& session) : session_(session) {}

  /// Where the reply goes of a command that is answered at once.
  std::string& Now();
  /// The run that takes `items` more of this call's command and topic.
  template <class R>
  R& Open(const Call& call, size_t items);
  /// Hands the open run to the service.
  void Flush();
  /// A slot for a call that is no run; no later command is begun until it is answered.
  Answer Hold(const Call& call);

  /// The next command must wait for the answer to the call under way.
  bool holding() const { return held_ != nullptr && !held_->done; }
  /// The open run creates its topic: until it is answered, no other call may use that topic.
  bool creating() const { return creating_; }
  /// A run is open.
  bool gathering() const { return open_command_ != nullptr; }
  /// The open run is large, and should be flushed before another command joins it.
  bool full() const { return gathering() && (open_items_ > kRunItems || begun_bytes_ > kRunBytes); }
  bool Continues(const Command* command, std::string_view topic) const;

  /// Moves the replies that are ready to `out`. Leaves a large one until `out` is empty: to append it would take long.
  void TakeReady(std::string& out);
  /// The reply that is sent next is ready.
  bool ready() const { return !slots_.empty() && slots_.front()->done; }
  /// So many bytes of the replies that were taken were sent.
  void Sent(size_t bytes);
  /// Leases in replies that were not sent as a whole.
  std::vector<Leases> TakeUnsent();
  /// Bytes of replies that are not taken.
  size_t ReadyBytes();
  /// A slot was answered.
  void Answered(Slot& slot);

  /// Extra bytes used by the commands of this run.
  void Begun(size_t bytes) { begun_bytes_ += bytes; }
  /// Bytes of commands that are not answered.
  size_t in_flight() const { return in_flight_; }
  /// True if all commands are answered. Otherwise holds until the oldest one that is not.
  bool AwaitAll();
  /// Whether all replies were taken.
  bool empty() const { return slots_.empty(); }
  size_t size() const { return slots_.size(); }

 private:
  // A run below both is always one step. A header counts for at most three times the bytes that it has on the wire.
  static constexpr size_t kRunItems = 800;
  static constexpr size_t kRunBytes = 256 << 10;
  static_assert(kRunItems * (kItemBytes + kReasonBytesMax) <= kStepBytes);
  static_assert(kRunItems * kItemBytes + 3 * kRunBytes <= kStepBytes);

  void Begin(const Call& call, std::string& topic, Bytes& bytes);
  bool Fits(size_t items) const;
  std::shared_ptr<Slot> NewSlot();
  void Count(Slot& slot);
  void Dispatch(SubmitRun run);
  void Dispatch(SettleRun run);
  void Dispatch(AmendRun run);
  void Dispatch(CountRun run);

  Session& session_;
  std::deque<std::shared_ptr<Slot>> slots_;
  size_t ready_bytes_ = 0;
  size_t begun_bytes_ = 0;  // of the open run
  size_t in_flight_ = 0;
  size_t taken_bytes_ = 0;                               // of replies, in all
  size_t sent_bytes_ = 0;                                // the same
  std::vector<std::pair<size_t, Leases>> taken_leases_;  // with the value of taken_bytes_ after their reply
  std::shared_ptr<Slot> held_;
  bool creating_ = false;
  const Command* open_command_ = nullptr;
  std::string_view open_topic_;       // a view of the bytes that are being read
  const void* open_bytes_ = nullptr;  // that the run keeps; commands in other bytes cannot join it
  size_t open_items_ = 0;
  std::variant<std::monostate, SubmitRun, SettleRun, AmendRun, CountRun> open_;
};

template <class R>
R& Pipeline::Open(const Call& call, size_t items) {
  R* run = std::get_if<R>(&open_);
  if (run == nullptr || !Continues(&call.command, call.topic()) || !Fits(items)) {
    Flush();
    run = &open_.emplace<R>();
    run->command = &call.command;
    run->request.checked = true;  // each command calls Validate, so that it fails alone
    Begin(call, run->request.topic, run->request.bytes);
  }
  open_items_ += items;
  return *run;
}

}  // namespace tocsin::resp
