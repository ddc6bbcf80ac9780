#include "storage/redis/allowances.h"

#include "model/placement.h"
#include "storage/redis/calls.h"

namespace tocsin::redis {
namespace {

// A full topic does not ask all its slots for every job that it refuses: at most this often, and at most one slot a
// millisecond. Slots that are known to have room are asked at once.
constexpr Millis kTakeBackEvery{50};
// A slot gets more than it asks for, so that not every submit has to ask: this part of an equal share.
constexpr uint64_t kShareOfSlot = 8;
constexpr int kTries = 3;

}  // namespace

struct Allowances::Request {
  StoredTopic topic;
  uint32_t slot = 0;
  Done<bool> done;
  uint64_t jobs = 0;
  uint64_t bytes = 0;
  uint64_t more_jobs = 0;  // in addition, given up first
  uint64_t more_bytes = 0;
  int tries = 0;
  bool took_back = false;
};

SlotKeys Allowances::KeysOf(const StoredTopic& topic, uint32_t slot) const { return tags_.KeysOf(topic.name, slot); }

Command Allowances::AtHome(const Script& script, const StoredTopic& topic) const {
  Command command = KeysOf(topic, 0).Call(script, {Part::kRoom});
  command.Add(static_cast<int64_t>(topic.era()));
  return command;
}

Command Allowances::AtSlot(const StoredTopic& topic, uint32_t slot) const {
  Command command = KeysOf(topic, slot).Call(Lua<"set_allowance">(), {Part::kMeta, Part::kJob, Part::kEnded});
  command.Add(static_cast<int64_t>(topic.era()));
  return command;
}

void Allowances::Ask(const StoredTopic& topic, uint32_t slot, uint64_t jobs, uint64_t bytes, Done<bool> done) {
  auto request = std::make_shared<Request>(topic, slot, std::move(done));
  if (topic.capacity_jobs != 0) request->jobs = jobs;
  if (topic.capacity_bytes != 0) request->bytes = bytes;
  if (jobs != 0) request->more_jobs = topic.capacity_jobs / topic.slots / kShareOfSlot;
  if (bytes != 0) request->more_bytes = topic.capacity_bytes / topic.slots / kShareOfSlot;
  Grant(std::move(request));
}

void Allowances::Grant(std::shared_ptr<Request> request) {
  const StoredTopic& topic = request->topic;
  Command command = AtHome(Lua<"grant">(), topic);
  command.Add(int64_t{request->slot});
  command.Add(static_cast<int64_t>(request->jobs + request->more_jobs));
  command.Add(static_cast<int64_t>(request->bytes + request->more_bytes));
  command.Add(int64_t{topic.slots});
  AddLimit(command, topic.capacity_jobs);
  AddLimit(command, topic.capacity_bytes);
  command.Add(int64_t{request->took_back});
  call_(std::move(command), [this, request = std::move(request)](Result<Reply> reply) {
    if (!reply) return request->done(std::unexpected(std::move(reply).error()));
    Granted(request, reply->root());
  });
}

void Allowances::Granted(const std::shared_ptr<Request>& request, const ReplyView& reply) {
  const auto again = [this, request](Status status) {
    if (!status) return request->done(std::unexpected(std::move(status).error()));
    Grant(request);
  };
  switch (static_cast<GrantOutcome>(reply[0].integer())) {
    case GrantOutcome::kGranted:
      return Allow(request, reply);
    case GrantOutcome::kUnregistered:
      if (++request->tries > kTries) break;
      return Register(request->topic, again);
    case GrantOutcome::kFull:
      if (request->more_jobs + request->more_bytes > 0) {
        request->more_jobs = request->more_bytes = 0;
        return Grant(request);
      }
      if (request->took_back) break;
      request->took_back = true;
      return TakeBack(request->topic, again);
    case GrantOutcome::kSettingsChanged:
      break;  // the settings have changed: with the new ones it may succeed
  }
  request->done(false);
}

void Allowances::Allow(std::shared_ptr<Request> request, const ReplyView& reply) {
  Command command = AtSlot(request->topic, request->slot);
  command.Add(reply[3].integer()).Add(reply[1].integer()).Add(reply[2].integer());
  call_(std::move(command), [request = std::move(request)](Result<Reply> allowed) {
    if (!allowed) return request->done(std::unexpected(std::move(allowed).error()));
    request->done(allowed->root()[0].integer() >= 0);
  });
}

void Allowances::Register(const StoredTopic& topic, Next next) {
  auto gather = Join(std::move(next));
  for (uint32_t slot = 0; slot < topic.slots; ++slot) Lower(topic, slot, std::nullopt, OneMore(gather));
  gather->Leave();
}

void Allowances::Lower(const StoredTopic& topic, uint32_t slot, std::optional<int64_t> serial, Answered answered) {
  Command lower = AtSlot(topic, slot);
  lower.Add(serial.value_or(0)).Add("").Add("");
  call_(std::move(lower), [this, topic, slot, serial, answered = std::move(answered)](Result<Reply> reply) {
    // Below 0: a newer era has begun.
    if (!reply || reply->root()[0].integer() < 0) return answered(std::move(reply));
    Command record = AtHome(Lua<"record_allowance">(), topic);
    record.Add(int64_t{slot}).Add(reply->root()[0].integer()).Add(reply->root()[1].integer());
    record.Add(serial ? fmt::format("{}", *serial) : "");
    call_(std::move(record), answered);
  });
}

void Allowances::TakeBack(const StoredTopic& topic, Next next) {
  Returns& returns = returns_[topic.name];
  returns.waiting.push_back(std::move(next));
  if (!returns.under_way) TakeBackRound(topic);
}

void Allowances::TakeBackRound(const StoredTopic& topic) {
  Returns& returns = returns_[topic.name];
  returns.under_way = true;
  const auto gather = Join([this, topic, served = std::exchange(returns.waiting, {})](const Result<void>& all) mutable {
    for (Next& next : served) next(all);
    Returns& later = returns_[topic.name];
    later.under_way = false;
    if (!later.waiting.empty()) TakeBackRound(topic);
  });
  std::set<uint32_t> slots = std::exchange(returns.freed, {});
  const auto now = clock_.IoNow();
  if (now - returns.all_asked_at >= std::max(kTakeBackEvery, Millis(topic.slots))) {
    returns.all_asked_at = now;
    for (uint32_t slot = 0; slot < topic.slots; ++slot) slots.insert(slot);
  }
  for (const uint32_t slot : slots) TakeBackFrom(topic, slot, OneMore(gather));
  gather->Leave();
}

void Allowances::TakeBackFrom(const StoredTopic& topic, uint32_t slot, Answered answered) {
  Command next = AtHome(Lua<"next_serial">(), topic);
  next.Add(int64_t{slot});
  call_(std::move(next), [this, topic, slot, answered = std::move(answered)](Result<Reply> reply) {
    if (!reply || reply->root().integer() < 0) return answered(std::move(reply));
    Lower(topic, slot, reply->root().integer(), answered);
  });
}

}  // namespace tocsin::redis
