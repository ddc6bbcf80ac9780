// The handlers, one small file for each group: decode, call the service, encode. No queue logic.
#pragma once

#include "frontend/http/router.h"

namespace tocsin::http {

// jobs.cc
void SubmitJobs(Call& call);
void ReserveJobs(Call& call);
void AckJobs(Call& call);
void CancelJob(Call& call);

// node.cc
void ShowHealth(Call& call);
void ShowMetrics(Call& call);
void AdvanceClock(Call& call);

/// Everything that is served. Advancing the clock is served with a virtual clock only.
Router MakeRouter(bool virtual_clock);

}  // namespace tocsin::http
