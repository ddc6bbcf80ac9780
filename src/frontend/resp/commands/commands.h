// Every command, each defined in a file of its own; command.cc has the table of them.
#pragma once

#include "frontend/resp/command.h"
#include "frontend/resp/encode.h"
#include "frontend/resp/options.h"
#include "frontend/resp/server.h"
#include "frontend/resp/session.h"

namespace tocsin::resp {

extern const Command kJobSubmit;
extern const Command kJobMsubmit;
extern const Command kJobReserve;
extern const Command kJobAck;
extern const Command kJobNack;
extern const Command kJobExtend;
extern const Command kJobCancel;
extern const Command kJobAmend;
extern const Command kJobFire;
extern const Command kJobCount;
extern const Command kJobGet;
extern const Command kJobList;
extern const Command kJobRedrive;
extern const Command kTopicSet;
extern const Command kTopicGet;
extern const Command kTopicList;
extern const Command kTopicTest;
extern const Command kTopicPause;
extern const Command kTopicResume;
extern const Command kTopicPurge;
extern const Command kTopicDrop;
extern const Command kClockAdvance;
extern const Command kPing;
extern const Command kAuth;
extern const Command kEcho;
extern const Command kHello;
extern const Command kCommand;
extern const Command kClient;
extern const Command kInfo;
extern const Command kNodes;
extern const Command kSelect;
extern const Command kQuit;
extern const Command kReset;

// Parts that several commands share: parts.cc.

/// DELAY and AT, of which one is given at most.
struct When {
  std::optional<Millis> delay;
  std::optional<Time> due;
};
Status TakeDelay(When& when, std::string_view word, Values values);
Status TakeAt(When& when, std::string_view word, Values values);
/// Into a NewJob or an Amendment.
template <class Item>
void SetWhen(Item& item, const When& when) {
  item.timeline = when.due ? Timeline::kUtc : Timeline::kSteady;
  item.delay = when.delay.value_or(Millis(0));
  item.due = when.due.value_or(Time{});
}

/// kInvalidArgument where a command has more jobs or tokens than one call takes.
Status CheckBatch(const Call& call, std::string_view what, size_t items);

/// Adds one amendment of the job that the call names to the run.
void Amend(Call& call, Amendment amendment);
/// Of all jobs of the topic; answers with how many it changed.
void Sweep(Call& call, SweepKind kind);
void ChangeTopic(Call& call, ChangeTopicRequest request);

inline Service& ServiceOf(Call& call) { return call.session.server().context().service; }
inline net::AsioLoop& LoopOf(Call& call) { return call.session.server().loop(); }
/// To answer at once.
inline Writer Reply(Call& call) { return {call.session.pipeline().Now(), call.session.protocol()}; }
inline void Ok(Call& call) { Reply(call).Simple("OK"); }

}  // namespace tocsin::resp
