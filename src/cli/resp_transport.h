// The API over RESP: each call as the commands that the table in resp_calls.cc names.
#pragma once

#include "cli/resp_client.h"
#include "cli/transport.h"

namespace tocsin::cli {

class RespTransport : public Transport {
 public:
  RespTransport(Endpoint endpoint, std::string token) : resp_(std::move(endpoint), std::move(token)) {}

  Result<boost::json::object> Call(std::string_view method, std::string_view target, const boost::json::object* body,
                                   Millis limit) override;
  void Abort() override { resp_.Abort(); }
  std::unique_ptr<Transport> Another() const override {
    return std::make_unique<RespTransport>(resp_.endpoint(), resp_.token());
  }
  const Endpoint& endpoint() const override { return resp_.endpoint(); }

 private:
  RespClient resp_;
};

}  // namespace tocsin::cli
