#include "frontend/resp/pipeline.h"

#include <algorithm>

#include "frontend/resp/encode.h"
#include "frontend/resp/server.h"
#include "frontend/resp/session.h"
#include "model/names.h"

namespace tocsin::resp {
namespace {

std::span<const NewJob> ItemsOf(const SubmitRequest& request) { return request.jobs; }
std::span<const Settlement> ItemsOf(const SettleRequest& request) { return request.settlements; }
std::span<const Amendment> ItemsOf(const AmendRequest& request) { return request.amendments; }
std::span<const CountEvent> ItemsOf(const CountRequest& request) { return request.events; }

}  // namespace

Answer::Answer(std::shared_ptr<Session> session, std::shared_ptr<Slot> slot, const Command& command, size_t commands)
    : session_(std::move(session)),
      slot_(std::move(slot)),
      command_(command),
      commands_(commands),
      protocol_(session_->protocol()),
      began_(session_->server().loop().clock().IoNow()) {}

bool Answer::Wanted() const { return session_->open(); }

std::shared_ptr<net::Connection> Answer::connection() const { return session_; }

Status Answer::MakeRoom(size_t bytes) { return session_->MakeRoom(bytes); }
Status Answer::MakeRoomForWhole(size_t bytes) { return session_->MakeRoomForWhole(bytes); }
shared::AnswerRoom Answer::NewRoom() { return session_->NewRoom(); }
void Answer::TakeRoom(shared::AnswerRoom& room) { session_->TakeRoom(room); }
void Answer::GiveBackRoom() { session_->LowerCharges(); }

void Answer::Done() {
  slot_->done = true;
  session_->pipeline().Answered(*slot_);
  Server& server = session_->server();
  server.Record(command_, commands_, server.loop().clock().IoNow() - began_);
  server.Wake(*session_);
}

void Answer::CountError(Code code) { session_->server().CountErrors(code, 1); }

void Answer::Fail(const Error& error) {
  for (size_t i = 0; i < commands_; ++i) writer().Fail(error);
  session_->server().CountErrors(error.code, commands_);
  Done();
}

std::shared_ptr<Slot> Pipeline::NewSlot() {
  auto slot = std::make_shared<Slot>();
  slot->request_bytes = std::exchange(begun_bytes_, 0);
  in_flight_ += slot->request_bytes;
  return slots_.emplace_back(std::move(slot));
}

std::string& Pipeline::Now() {
  Flush();
  begun_bytes_ = 0;
  if (!slots_.empty()) Count(*slots_.back());
  if (slots_.empty() || !slots_.back()->done) NewSlot()->done = true;
  return slots_.back()->text;
}

void Pipeline::Answered(Slot& slot) {
  Count(slot);
  in_flight_ -= slot.request_bytes;
}

bool Pipeline::AwaitAll() {
  Flush();
  const auto open = std::ranges::find(slots_, false, [](const auto& slot) { return slot->done; });
  if (open == slots_.end()) return true;
  held_ = *open;
  return false;
}

void Pipeline::Count(Slot& slot) {
  ready_bytes_ += slot.text.size() - slot.counted;
  slot.counted = slot.text.size();
}

size_t Pipeline::ReadyBytes() {
  if (!slots_.empty()) Count(*slots_.back());
  return ready_bytes_;
}

Answer Pipeline::Hold(const Call& call) {
  Flush();
  held_ = NewSlot();
  return {session_.Share(), held_, call.command};
}

bool Pipeline::Continues(const Command* command, std::string_view topic) const {
  return command == open_command_ && topic == open_topic_ && session_.bytes().get() == open_bytes_;
}

bool Pipeline::Fits(size_t items) const {
  return open_items_ + items <= session_.server().context().service.limits().batch;
}

void Pipeline::Begin(const Call& call, std::string& topic, Bytes& bytes) {
  open_command_ = &call.command;
  open_topic_ = call.topic();
  topic = call.topic();
  bytes = session_.bytes();
  open_bytes_ = bytes.get();
  Server& server = session_.server();
  creating_ = std::holds_alternative<SubmitRun>(open_) && !server.context().service.Knows(server.loop(), topic);
}

void Pipeline::Flush() {
  if (open_command_ == nullptr) return;
  open_command_ = nullptr;
  open_items_ = 0;
  auto open = std::exchange(open_, std::monostate{});
  bool alone = std::exchange(creating_, false);
  std::visit(
      [&]<class R>(R& run) {
        if constexpr (!std::is_same_v<R, std::monostate>) {
          alone = alone || TakesSteps(ItemsOf(run.request));
          Dispatch(std::move(run));
        }
      },
      open);
  if (alone) held_ = slots_.back();
}

void Pipeline::Dispatch(SubmitRun run) {
  Server& server = session_.server();
  Answer answer(session_.Share(), NewSlot(), *run.command, run.parts.size());
  auto write = [parts = std::move(run.parts), bytes = run.request.bytes](Answer& to, std::span<const Submitted> jobs) {
    Writer writer = to.writer();
    for (const Submitted& job : jobs) {
      if (!IsStored(job.outcome)) to.CountError(CodeOf(job.outcome));
    }
    for (const SubmitRun::Part& part : parts) {
      WriteSubmitted(writer, jobs.first(part.items), part.own_id, part.many);
      jobs = jobs.subspan(part.items);
    }
  };
  if (session_.grant() != nullptr) run.request.prefix = session_.grant()->prefix;
  server.context().service.Submit(server.loop(), std::move(run.request), answer.Then(std::move(write)));
}

void Pipeline::Dispatch(SettleRun run) {
  Server& server = session_.server();
  Answer answer(session_.Share(), NewSlot(), *run.command, run.parts.size());
  auto write = [parts = std::move(run.parts)](Answer& to, std::span<const SettleOutcome> outcomes) {
    Writer writer = to.writer();
    for (const SettleRun::Part& part : parts) {
      WriteSettled(writer, outcomes.first(part.items));
      outcomes = outcomes.subspan(part.items);
    }
  };
  server.context().service.Settle(server.loop(), std::move(run.request), answer.Then(std::move(write)));
}

void Pipeline::Dispatch(AmendRun run) {
  Server& server = session_.server();
  Answer answer(session_.Share(), NewSlot(), *run.command, run.request.amendments.size());
  auto write = [kind = run.request.amendments.front().kind](Answer& to, const std::vector<Amended>& results) {
    Writer writer = to.writer();
    for (const Amended& amended : results) {
      if (const auto refusal = RefusalOf(amended.outcome)) to.CountError(refusal->code);
      WriteAmended(writer, amended, kind);
    }
  };
  server.context().service.Amend(server.loop(), std::move(run.request), answer.Then(std::move(write)));
}

void Pipeline::Dispatch(CountRun run) {
  Server& server = session_.server();
  Answer answer(session_.Share(), NewSlot(), *run.command, run.request.events.size());
  auto write = [](Answer& to, const std::vector<Counted>& results) {
    Writer writer = to.writer();
    for (const Counted& counted : results) {
      if (const auto refusal = RefusalOf(counted.outcome)) to.CountError(refusal->code);
      WriteCounted(writer, counted);
    }
  };
  server.context().service.Count(server.loop(), std::move(run.request), answer.Then(std::move(write)));
}

void Pipeline::Sent(size_t bytes) {
  sent_bytes_ += bytes;
  if (taken_leases_.empty()) return;
  std::erase_if(taken_leases_, [this](const auto& taken) { return taken.first <= sent_bytes_; });
}

std::vector<Leases> Pipeline::TakeUnsent() {
  std::vector<Leases> unsent;
  for (auto& [end, leases] : taken_leases_) unsent.push_back(std::move(leases));
  taken_leases_.clear();
  for (const auto& slot : slots_) {
    if (!slot->leases.tokens.empty()) unsent.push_back(std::exchange(slot->leases, {}));
  }
  return unsent;
}

void Pipeline::TakeReady(std::string& out) {
  while (ready()) {
    std::string& text = slots_.front()->text;
    if (!out.empty() && text.size() > net::Budget::kSmallBytes) return;
    ready_bytes_ -= slots_.front()->counted;
    taken_bytes_ += text.size();
    Leases& leases = slots_.front()->leases;
    if (!leases.tokens.empty()) taken_leases_.emplace_back(taken_bytes_, std::move(leases));
    if (out.empty()) {
      out.swap(text);
    } else {
      out += text;
    }
    if (slots_.front() == held_) held_.reset();
    slots_.pop_front();
  }
}

}  // namespace tocsin::resp
