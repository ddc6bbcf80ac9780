// How events, histories, latenesses and deliveries are shown, the same on every wire. No state.
#pragma once

#include <functional>
#include <string_view>

#include "core/events.h"
#include "core/service.h"
#include "frontend/shared/value_writer.h"

namespace tocsin::shared {

/// Who an event is shown to.
struct EventView {
  const EventInterest& interest;
  bool whole_urls = true;
};
void Show(ValueWriter& out, const Event& event, const EventView& view);

void Show(ValueWriter& out, const HistoryReport& report);
void Show(ValueWriter& out, const metrics::Histogram::Snapshot& lateness);
void Show(ValueWriter& out, const DeliveryReport& report);

/// At least what they take when they are shown.
size_t BytesMax(const HistoryReport& report);
size_t BytesMax(const DeliveriesPage& page);
constexpr size_t kLatenessBytes = 16 << 10;

}  // namespace tocsin::shared
