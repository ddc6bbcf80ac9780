// The handlers of verbs that RESP serves in its own way, and the commands that only RESP has. command.cc has the table.
#pragma once

#include "frontend/resp/command.h"
#include "frontend/resp/encode.h"
#include "frontend/resp/options.h"
#include "frontend/resp/server.h"
#include "frontend/resp/session.h"

namespace tocsin::resp {

extern const Command kAuth;
extern const Command kClient;
extern const Command kCommand;
extern const Command kEcho;
extern const Command kHello;
extern const Command kInfo;
extern const Command kJobMsubmit;
extern const Command kPing;
extern const Command kQuit;
extern const Command kReset;
extern const Command kSelect;

void JobSubmit(Call& call);
void JobReserve(Call& call);
void JobAck(Call& call);
void JobNack(Call& call);
void JobExtend(Call& call);
void JobCancel(Call& call);
void JobAmend(Call& call);
void JobFire(Call& call);
void JobCount(Call& call);
/// Serves the call's verb by its handler in frontend/shared.
void RunShared(Call& call);

/// kInvalidArgument if a command has more jobs or tokens than one call takes.
Status CheckBatch(const Call& call, std::string_view what, size_t items);

inline Service& ServiceOf(Call& call) { return call.session.server().context().service; }
inline net::AsioLoop& LoopOf(Call& call) { return call.session.server().loop(); }
/// To answer at once.
inline Writer Reply(Call& call) { return {call.session.pipeline().Now(), call.session.protocol()}; }
inline void Ok(Call& call) { Reply(call).Simple("OK"); }

}  // namespace tocsin::resp
