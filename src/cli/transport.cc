#include "cli/transport.h"

#include "cli/http_transport.h"
#include "cli/resp_transport.h"

namespace tocsin::cli {

std::unique_ptr<Transport> MakeTransport(Endpoint endpoint, std::string token) {
  if (endpoint.door == Door::kResp) return std::make_unique<RespTransport>(std::move(endpoint), std::move(token));
  return std::make_unique<HttpTransport>(std::move(endpoint), std::move(token));
}

}  // namespace tocsin::cli
