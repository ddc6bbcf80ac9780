// The servers that load_bench can drive, by name.
#pragma once

#include <memory>
#include <string>

#include "load/protocol.h"

namespace tocsin::bench {

/// Dies if there is no driver of that name.
std::unique_ptr<Protocol> MakeProtocol(const Options& options);
/// "tocsin-resp, tocsin-http, ..."
std::string DriverNames();

std::unique_ptr<Protocol> MakeTocsinResp(const Options& options);
std::unique_ptr<Protocol> MakeTocsinPush(const Options& options);
std::unique_ptr<Protocol> MakeTocsinHttp(const Options& options);
std::unique_ptr<Protocol> MakeBeanstalkd(const Options& options);
std::unique_ptr<Protocol> MakeRedisHash(const Options& options);
std::unique_ptr<Protocol> MakeRedisSlot(const Options& options);
std::unique_ptr<Protocol> MakeProbe(const Options& options);

}  // namespace tocsin::bench
