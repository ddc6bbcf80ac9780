#include "server/lifecycle.h"

#include <cstring>
#include <vector>

#include "base/log_event.h"
#include "base/version.h"
#include "config/options.h"
#include "server/options.h"

namespace tocsin {

void LogStart(const Config& config) {
  const std::string store = ShowOption(*FindOption("store"), config);
  const std::string version(Version());
  const std::string redis = AddressesText(config.redis_endpoints);
  std::vector<LogField> fields{{"version", version}, {"store", store}};
  if (config.store == StoreKind::kRedis) {
    fields.push_back({"redis", redis});
    fields.push_back({"prefix", config.redis_prefix});
  } else {
    fields.push_back({"folder", config.data_dir});
  }
  fields.push_back({"shards", config.shards});
  LogEvent(LogLevel::kInfo, "start", fields);
}

void LogReady(const ReadyFacts& facts) {
  std::vector<LogField> fields{{"http", facts.http}, {"resp", facts.resp}};
  if (!facts.tls.empty()) fields.push_back({"tls", facts.tls});
  if (facts.jobs_recovered) fields.push_back({"jobs_recovered", static_cast<int64_t>(*facts.jobs_recovered)});
  fields.push_back({"took_ms", facts.took.count()});
  LogEventAlways("ready", fields);
}

void LogStopping(int signal, size_t connections) {
  const char* const known = ::sigabbrev_np(signal);
  const std::string name = known == nullptr ? std::to_string(signal) : std::string("SIG").append(known);
  const LogField fields[] = {{"signal", name}, {"connections", static_cast<int64_t>(connections)}};
  LogEvent(LogLevel::kInfo, "stopping", fields);
}

void LogStopped(Millis took, const std::optional<JobCounts>& jobs, bool clean) {
  std::vector<LogField> fields{{"took_ms", took.count()}};
  if (jobs) {
    fields.push_back({"scheduled", static_cast<int64_t>(jobs->scheduled)});
    fields.push_back({"leased", static_cast<int64_t>(jobs->leased)});
    fields.push_back({"dead", static_cast<int64_t>(jobs->dead)});
  }
  fields.push_back({"clean", clean});
  LogEvent(LogLevel::kInfo, "stopped", fields);
}

}  // namespace tocsin
