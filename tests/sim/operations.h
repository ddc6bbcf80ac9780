// Operations on a store as values, so that the same one can be given to the store under test and to the oracle
// (spi/contract/memory_store.h), now or again after a crash. Each answers with a text in which everything that the two
// have to agree on is spelled out; tokens, which differ, are known by the order in which they were given out.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "spi/store.h"

namespace tocsin::sim {

/// One of the stores; the tokens of its deliveries, in their order; and what its last Advance found.
struct Side {
  Store* store = nullptr;
  std::vector<Token> tokens;
  std::set<std::string> announced;  // topics said to have jobs, and not claimed empty since
  Moment next;                      // when it has work next, as it says
};

struct Reply {
  bool ok = false;
  std::string text;
};
using OnReply = std::function<void(Reply)>;

struct Operation {
  std::string text;    // for messages
  bool writes = true;  // an ok means that everything before it is durable
  std::function<void(Side&, Moment, OnReply)> run;
  std::vector<Operation> parts = {};  // the same, one job at a time: a crash may part them
};

struct OwnedJob {
  std::string id;
  std::string key;
  Timeline timeline = Timeline::kSteady;
  Millis delay{0};
  Time due{};
  Trigger trigger = Trigger::kTime;
  uint32_t count = 0;
  uint32_t max_attempts = 0;
  OnConflict on_conflict = OnConflict::kReject;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string payload;
  uint32_t slot = 0;

  NewJob View() const;
};

struct OwnedSettlement {
  size_t delivery = 0;  // the index of its token
  SettleKind kind = SettleKind::kAck;
  std::optional<Millis> delay;
  Millis lease{0};
  std::string reason;
};

struct OwnedAmendment {
  std::string id;
  std::string key;
  AmendKind kind = AmendKind::kCancel;
  Timeline timeline = Timeline::kSteady;
  Millis delay{0};
  Time due{};
  uint32_t max_attempts = 0;
  std::optional<std::string> payload;
};

struct OwnedEvent {
  std::string id;
  std::string key;
  std::string event;
  uint32_t by = 1;
};

Operation PutTopic(Topic topic);
Operation DropTopic(std::string topic);
Operation Submit(std::string topic, std::vector<OwnedJob> jobs);
/// Advances, as the service does, and claims. Answers "early" where a job is delivered before its due time. Without
/// `ordered` the deliveries count in the order of their uids: jobs of both timelines change places when the clock is
/// stepped.
Operation Claim(std::string topic, size_t max, Millis lease, bool ordered = true);
Operation Settle(std::string topic, std::vector<OwnedSettlement> settlements);
Operation Amend(std::string topic, std::vector<OwnedAmendment> amendments);
Operation Count(std::string topic, std::vector<OwnedEvent> events);
/// All that there is to sweep, at most `limit` jobs in a call.
Operation Sweep(std::string topic, SweepKind kind, size_t limit);
/// Until there is nothing more to do now.
Operation Advance();

/// Everything that can be seen of a store: topics, figures, every job in every state.
std::string Dump(Store& store, Moment now);

/// The first line in which two dumps differ.
std::string Difference(const std::string& stored, const std::string& expected);

}  // namespace tocsin::sim
