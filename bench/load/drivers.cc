#include "load/drivers.h"

#include <utility>

namespace tocsin::bench {
namespace {

constexpr std::pair<std::string_view, std::unique_ptr<Protocol> (*)(const Options&)> kDrivers[] = {
    {"tocsin-resp", MakeTocsinResp},
    {"tocsin-push", MakeTocsinPush},
    {"tocsin-http", MakeTocsinHttp},
    {"beanstalkd", MakeBeanstalkd},
    {"redis-hash", MakeRedisHash},
    {"redis-slot", MakeRedisSlot},
    {"probe", MakeProbe}};

}  // namespace

std::unique_ptr<Protocol> MakeProtocol(const Options& options) {
  for (const auto& [name, make] : kDrivers) {
    if (name == options.driver) return make(options);
  }
  Die("--driver is {}, not one of {}", options.driver.empty() ? "missing" : options.driver, DriverNames());
}

std::string DriverNames() {
  std::string names;
  for (const auto& [name, make] : kDrivers) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  return names;
}

}  // namespace tocsin::bench
