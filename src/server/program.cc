#include "server/program.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "base/log.h"
#include "server/node.h"

namespace tocsin {
namespace {

void Print(std::FILE* to, std::string_view text) {
  fmt::print(to, "{}", text);
  std::fflush(to);
}

int ExitStatusOf(Code code) {
  if (code == Code::kShuttingDown) return kExitOk;
  return code == Code::kInvalidArgument ? kExitBadConfig : kExitCannotStart;
}

}  // namespace

std::string BannerText(const BannerFacts& facts) {
  const std::string topic = facts.url + "/v1/topics/demo";
  const std::string_view token = facts.tokens ? " -H \"Authorization: Bearer $TOCSIN_TOKEN\"" : "";
  std::string text = fmt::format(
      "{}"
      "{}\n"
      "http     {}\n"
      "resp     {}   ({}redis-cli -p {})\n"
      "metrics  {}/metrics\n",
      facts.version, facts.store, facts.url, facts.resp, facts.tokens ? "REDISCLI_AUTH=$TOCSIN_TOKEN " : "",
      facts.resp.substr(facts.resp.rfind(':') + 1), facts.url);
  if (facts.virtual_clock) {
    text += fmt::format("clock    virtual: curl{} -d '{{\"ms\":1000}}' {}/v1/clock/advance\n", token, facts.url);
  }
  if (facts.tokens)
    text += "tokens   every call needs an access token: export TOCSIN_TOKEN=... (tocsin token create)\n";
  text += fmt::format(
      "\nA first job, due in 5 seconds; paste this into another terminal:\n"
      "  curl{1} -d '{{\"payload\":\"hello\",\"delay_ms\":5000}}' {0}/jobs\n",
      topic, token);
  // With a virtual clock nothing becomes due by itself.
  if (facts.virtual_clock) text += fmt::format("  curl{} -d '{{\"ms\":5000}}' {}/v1/clock/advance\n", token, facts.url);
  text += fmt::format(
      "  TOKEN=$(curl{1} -s -d '{{\"wait_ms\":10000}}' {0}/reserve | tee /dev/stderr | grep -o '\"token\":\"[^\"]*' "
      "| cut -d'\"' -f4)\n"
      "  curl{1} -d \"{{\\\"tokens\\\":[\\\"$TOKEN\\\"]}}\" {0}/ack\n"
      "\nReady. Stop with Ctrl-C.\n",
      topic, token);
  return text;
}

size_t FitConnections(size_t wanted) {
  constexpr size_t kReserve = 64;  // for the journal, the listener, the loops
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const size_t fit = limit.rlim_cur > kReserve ? limit.rlim_cur - kReserve : 1;
  if (fit >= wanted) return wanted;
  LogWarn("limits.connections is {}, but the system allows {} open files: accepting {} connections", wanted,
          limit.rlim_cur, fit);
  return fit;
}

int RunProgram(const Inputs& inputs, std::FILE* out, std::FILE* err) {
  const auto loaded = LoadConfig(inputs);
  if (!loaded) {
    Print(err, fmt::format("tocsind: {}\n", loaded.error().message));
    return kExitBadConfig;
  }
  if (loaded->action == Action::kPrint) {
    Print(out, loaded->text);
    return kExitOk;
  }
  SetLogLevel(loaded->config.log_level);
  const auto node = ServerNode::Open(loaded->config);
  if (!node) {
    Print(err, fmt::format("tocsind: {}\n", node.error().message));
    return ExitStatusOf(node.error().code);
  }
  Print(out, (*node)->Banner());
  return (*node)->Run();
}

}  // namespace tocsin
