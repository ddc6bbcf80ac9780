#include "clients/redis/context.h"

namespace tocsin::redis {
namespace {

constexpr std::string_view kCommands = "tocsin_redis_commands_total";
constexpr std::string_view kCommandsHelp = "Commands to Redis, by how they ended.";
constexpr std::string_view kRedirects = "tocsin_redis_redirects_total";
constexpr std::string_view kRedirectsHelp = "Commands that a node of a Redis Cluster sent on to another one.";

}  // namespace

Figures::Figures(metrics::Registry& registry)
    : round_trips(registry.GetHistogram("tocsin_redis_round_trip_seconds",
                                        "From the sending of a command to Redis to its answer.")),
      answered(registry.GetCounter(kCommands, kCommandsHelp, {{"outcome", "answered"}})),
      refused(registry.GetCounter(kCommands, kCommandsHelp, {{"outcome", "refused"}})),
      failed(registry.GetCounter(kCommands, kCommandsHelp, {{"outcome", "failed"}})),
      reconnects(registry.GetCounter("tocsin_redis_reconnects_total", "Connections to Redis that were made again.")),
      moved(registry.GetCounter(kRedirects, kRedirectsHelp, {{"kind", "moved"}})),
      asked(registry.GetCounter(kRedirects, kRedirectsHelp, {{"kind", "ask"}})),
      registry_(registry) {}

void Figures::RecordScript(const Script& script, std::chrono::nanoseconds took) {
  auto& histogram = scripts_[script.name()];
  if (histogram == nullptr) {
    histogram = registry_.GetHistogram("tocsin_redis_script_seconds", "From the sending of a script to its answer.",
                                       {{"script", script.name()}});
  }
  histogram->Record(took);
}

}  // namespace tocsin::redis
