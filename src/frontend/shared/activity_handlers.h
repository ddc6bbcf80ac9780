// Handlers that show what the node does: pages of topics, histories, latenesses, deliveries (handlers.h).
#pragma once

#include "frontend/shared/handlers.h"

namespace tocsin::shared {

/// Whether the call asks for a page of the topics, and not for all.
bool AsksForPage(const api::Arguments& arguments);
void ShowTopicsPage(Call call);
void ShowHistory(Call call);
void ShowLateness(Call call);
void ListDeliveries(Call call);

}  // namespace tocsin::shared
