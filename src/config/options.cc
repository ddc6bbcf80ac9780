#include "config/options.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace tocsin {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

constexpr std::array<std::string_view, 3> kDurabilities{"fsync", "interval", "os"};
constexpr std::array<std::string_view, 2> kClocks{"real", "virtual"};
constexpr std::array<std::string_view, 5> kLogLevels{"debug", "info", "warn", "error", "off"};

constexpr std::array<std::string_view, 2> kSwitch{"false", "true"};

constexpr std::string_view kServer = "Server";
constexpr std::string_view kAuth = "Authentication";
constexpr std::string_view kDurable = "Durability";
constexpr std::string_view kLimits = "Limits";

constexpr std::array kOptions{
    Option{.group = kServer,
           .key = "data_dir",
           .member = &Config::data_dir,
           .fallback = "./tocsin-data",
           .doc = "The folder of the embedded store. Made where it is missing; one server at a time may use it."},
    Option{.group = kServer,
           .key = "http.listen",
           .member = &Config::http_listen,
           .fallback = "127.0.0.1:7420",
           .doc =
               "The address of the HTTP API. One that other machines can reach needs auth.token_file. Port 0 takes any "
               "free one; the log names it."},
    Option{.group = kServer,
           .key = "resp.listen",
           .member = &Config::resp_listen,
           .fallback = "127.0.0.1:7421",
           .doc =
               "The address for Redis clients (RESP). One that other machines can reach needs auth.token_file. Port 0 "
               "takes any free one; the log names it."},
    Option{.group = kServer,
           .key = "shards",
           .member = &Config::shards,
           .fallback = "0",
           .min = 1,
           .max = 64,
           .zero = "half of the cores, at least 1",
           .doc = "Threads that serve connections and topics, each with its own part of the jobs."},
    Option{.group = kServer,
           .key = "memory_limit",
           .member = &Config::memory_limit,
           .fallback = "0",
           .min = 64 * kMiB,
           .max = 1024 * 1024 * kGiB,
           .zero = "70 % of the memory",
           .doc = "What jobs may occupy in memory. New jobs are refused at the limit; delivery, ack and cancel go on."},
    Option{.group = kServer,
           .key = "clock",
           .member = &Config::clock,
           .fallback = "real",
           .choices = kClocks,
           .doc =
               "A virtual clock stands still until it is advanced through the API, so that a test can be thirty days "
               "later at once. Never for production."},
    Option{.group = kServer,
           .key = "log.level",
           .member = &Config::log_level,
           .fallback = "info",
           .choices = kLogLevels,
           .doc = "The least important messages that are still logged."},
    Option{.group = kAuth,
           .key = "auth.token_file",
           .member = &Config::auth_token_file,
           .fallback = "",
           .doc =
               "The file of tokens that `tocsin token create` writes; mode 0600. Every call but the health checks then "
               "needs one of them. Read again when it changes, and on SIGHUP. Empty: no authentication, and only this "
               "machine can reach the server."},
    Option{.group = kAuth,
           .key = "auth.allow_unauthenticated",
           .member = &Config::auth_allow_unauthenticated,
           .fallback = "false",
           .choices = kSwitch,
           .doc = "Lets http.listen and resp.listen be reached by other machines without auth.token_file: whoever "
                  "reaches them may do everything. Only where something else keeps strangers out."},
    Option{.group = kDurable,
           .key = "durability",
           .member = &Config::durability,
           .fallback = "fsync",
           .choices = kDurabilities,
           .doc =
               "When a call is answered. fsync: after its data is on the disk; a power cut loses nothing that was "
               "acknowledged. interval: at once, with a sync every durability_interval; a power cut loses up to that "
               "much. os: at once, synced when the kernel likes; a crash of the server alone still loses nothing."},
    Option{.group = kDurable,
           .key = "durability_interval",
           .member = &Config::durability_interval,
           .fallback = "50ms",
           .min = 1,
           .max = 10'000,
           .doc = "The time between two syncs where durability is interval."},
    Option{.group = kDurable,
           .key = "journal.segment_size",
           .member = &Config::journal_segment_size,
           .fallback = "64MiB",
           .min = 4 * kMiB,
           .max = kGiB,
           .doc =
               "The size of one file of the journal, at least five times limits.payload_size. Space is given back in "
               "these units. A data folder keeps the size that it was made with."},
    Option{.group = kLimits,
           .key = "limits.payload_size",
           .member = &Config::limits_payload_size,
           .fallback = "1MiB",
           .min = 1,
           .max = 16 * kMiB,
           .doc = "The largest payload of one job, at most limits.body_size."},
    Option{.group = kLimits,
           .key = "limits.body_size",
           .member = &Config::limits_body_size,
           .fallback = "16MiB",
           .min = 1024,
           .max = 256 * kMiB,
           .doc = "The largest body of one HTTP request, and the largest RESP command."},
    Option{.group = kLimits,
           .key = "limits.connections",
           .member = &Config::limits_connections,
           .fallback = "10000",
           .min = 1,
           .max = 1'000'000,
           .doc = "Connections open at once, over HTTP and RESP together; more are refused."},
    Option{.group = kLimits,
           .key = "limits.batch",
           .member = &Config::limits_batch,
           .fallback = "10000",
           .min = 1,
           .max = 100'000,
           .doc = "Jobs, tokens or ids in one call."},
};

}  // namespace

std::span<const Option> Options() { return kOptions; }

const Option* FindOption(std::string_view key) {
  const auto* const found = std::ranges::find(kOptions, key, &Option::key);
  return found == kOptions.end() ? nullptr : found;
}

std::string FlagOf(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::ranges::replace_if(flag, [](char c) { return c == '.' || c == '_'; }, '-');
  return flag;
}

std::string VariableOf(std::string_view key) {
  std::string variable = "TOCSIN_";
  for (const char c : key) {
    variable += c == '.' || c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return variable;
}

}  // namespace tocsin
