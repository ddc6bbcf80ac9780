// Handlers for leases and for single dead letters, the same on every door (handlers.h).
#pragma once

#include "frontend/shared/handlers.h"

namespace tocsin::shared {

void ListLeases(Call call);
void ListAllLeases(Call call);
void RevokeLease(Call call);
void RedriveJob(Call call);
void RemoveDeadJob(Call call);

}  // namespace tocsin::shared
