// The handlers, one small file for each group: decode, call the service, encode. No queue logic.
#pragma once

#include "frontend/http/router.h"

namespace tocsin::http {

// jobs.cc
void SubmitJobs(Call& call);
void ListJobs(Call& call);
void ShowJob(Call& call);
void AmendJob(Call& call);
void CancelJob(Call& call);
void FireJob(Call& call);
void CountJob(Call& call);

// delivery.cc
void ReserveJobs(Call& call);
void AckJobs(Call& call);
void NackJobs(Call& call);
void ExtendJobs(Call& call);

// topics.cc
void PutTopic(Call& call);
void ShowTopic(Call& call);
void ListTopics(Call& call);
void DropTopic(Call& call);
void PauseTopic(Call& call);
void ResumeTopic(Call& call);
void TestTopic(Call& call);
void PurgeTopic(Call& call);
void RedriveDead(Call& call);
void PurgeDead(Call& call);

// node.cc
void ShowHealth(Call& call);
void ShowReady(Call& call);
void ShowMetrics(Call& call);
void ShowStats(Call& call);
void ShowCluster(Call& call);
void ShowOpenApi(Call& call);
void AdvanceClock(Call& call);

/// Everything that is served. Advancing the clock is served with a virtual clock only.
Router MakeRouter(bool virtual_clock);

}  // namespace tocsin::http
