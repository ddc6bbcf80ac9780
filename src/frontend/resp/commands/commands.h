// The handlers of verbs that RESP serves in its own way, and of the commands that only RESP has. command.cc has the
// table. A handler answers now or later, or returns the error to answer with.
#pragma once

#include "frontend/resp/command.h"
#include "frontend/resp/encode.h"
#include "frontend/resp/options.h"
#include "frontend/resp/server.h"
#include "frontend/resp/session.h"

namespace tocsin::resp {

// connection.cc
Status Auth(Call& call);
Status Client(Call& call);
Status Echo(Call& call);
Status Hello(Call& call);
Status Ping(Call& call);
Status Quit(Call& call);
Status Reset(Call& call);
Status Select(Call& call);

// info.cc
Status DescribeCommands(Call& call);
Status Info(Call& call);

// jobs.cc
Status JobSubmit(Call& call);
Status JobMsubmit(Call& call);
Status JobReserve(Call& call);
Status JobAck(Call& call);
Status JobNack(Call& call);
Status JobExtend(Call& call);
Status JobCancel(Call& call);
Status JobAmend(Call& call);
Status JobFire(Call& call);
Status JobCount(Call& call);
/// Serves the call's verb by its handler in frontend/shared.
Status RunShared(Call& call);

/// To answer at once.
inline Writer Reply(Call& call) { return {call.session.pipeline().Now(), call.session.protocol()}; }
inline Status Ok(Call& call, std::string_view word = "OK") {
  Reply(call).Simple(word);
  return {};
}

}  // namespace tocsin::resp
