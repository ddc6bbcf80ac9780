// The handlers, one small file for each group: decode, call the service, encode. No queue logic.
#pragma once

#include "frontend/http/router.h"

namespace tocsin::http {

// jobs.cc
void SubmitJobs(Call& call);
void AmendJob(Call& call);
void CancelJob(Call& call);
void FireJob(Call& call);
void CountJob(Call& call);

// delivery.cc
void ReserveJobs(Call& call);
void AckJobs(Call& call);
void NackJobs(Call& call);
void ExtendJobs(Call& call);

// node.cc
void ShowHealth(Call& call);
void ShowReady(Call& call);
void ShowMetrics(Call& call);
void ShowStats(Call& call);
void ShowOpenApi(Call& call);

/// Serves the call's verb by its handler in frontend/shared: shared_call.cc.
void RunShared(Call& call);

/// The route that serves a verb.
Route RouteOf(api::VerbId id);
/// Everything that is served. Advancing the clock is served with a virtual clock only.
Router MakeRouter(bool virtual_clock);

}  // namespace tocsin::http
