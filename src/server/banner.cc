#include "server/banner.h"

#include <fmt/format.h>

namespace tocsin {

std::string BannerText(const BannerFacts& facts) {
  const std::string topic = facts.url + "/v1/topics/demo";
  std::string text = fmt::format(
      "{}"
      "data     {} ({})\n"
      "http     {}\n"
      "metrics  {}/metrics\n",
      facts.version, facts.data_dir, facts.recovery, facts.url, facts.url);
  if (facts.virtual_clock) {
    text += fmt::format("clock    virtual: curl -d '{{\"ms\":1000}}' {}/v1/clock/advance\n", facts.url);
  }
  text += fmt::format(
      "\nA first job, due in 5 seconds; paste this into another terminal:\n"
      "  curl -d '{{\"payload\":\"hello\",\"delay_ms\":5000}}' {0}/jobs\n"
      "  TOKEN=$(curl -s -d '{{\"wait_ms\":10000}}' {0}/reserve | tee /dev/stderr | grep -o '\"token\":\"[^\"]*' | cut "
      "-d'\"' -f4)\n"
      "  curl -d \"{{\\\"tokens\\\":[\\\"$TOKEN\\\"]}}\" {0}/ack\n"
      "\nReady. Stop with Ctrl-C.\n",
      topic);
  return text;
}

}  // namespace tocsin
