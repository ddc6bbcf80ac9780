#include "server/banner.h"

#include <fmt/format.h>

namespace tocsin {

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

}  // namespace tocsin
