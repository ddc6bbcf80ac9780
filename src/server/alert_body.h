// The body of a post about alerts: version 4 of what Prometheus' Alertmanager sends to its webhooks, so that whatever
// receives those takes these too. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/alerts.h"

namespace tocsin {

/// `url`: of this node's HTTP API, without a path. There is at least one alert; each fires or is resolved.
std::string AlertBody(const AlertOrigin& origin, std::span<const Alert> alerts, std::string_view url);

/// As RFC 3339 writes it, in UTC.
std::string AlertTime(Time time);

}  // namespace tocsin
