// The workloads of load_bench. Each drives one running server and adds its figures to a JSON object; what is not
// delivered, or early, ends the program instead.
#pragma once

#include <vector>

#include "load/json.h"
#include "load/protocol.h"

namespace tocsin::bench {

/// What a workload runs on.
struct Subject {
  const Options& options;
  Protocol& protocol;
  const std::vector<Endpoint>& endpoints;  // several are one queue
};

/// All due at one moment: submitted, then reserved and acknowledged when that has come.
void Drain(const Subject& subject, Json& out);
/// Delays of 1-5 s, submitted as fast as possible while they are consumed.
void Life(const Subject& subject, Json& out);
/// Delays of 1-5 s, submitted at a steady rate whatever the server does: how late they come.
void Steady(const Subject& subject, Json& out);
/// Due in 1-24 h: submitted, and left there.
void Submit(const Subject& subject, Json& out);

/// Runs --workload and returns its figures with what it ran with.
Json RunWorkload(const Options& given, Protocol& protocol, const std::vector<Endpoint>& endpoints);
std::string WorkloadNames();

}  // namespace tocsin::bench
