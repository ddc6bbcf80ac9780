// The API over HTTP: JSON as it is.
#pragma once

#include "cli/http_client.h"
#include "cli/transport.h"

namespace tocsin::cli {

class HttpTransport : public Transport {
 public:
  HttpTransport(Endpoint endpoint, std::string token) : http_(std::move(endpoint), std::move(token)) {}

  /// A status of an error that is not of a Tocsin server is an Error too, and kIo where it is a gateway's (502 to 504).
  /// A submit that stored nothing has such a status as well, but its outcomes are an answer.
  Result<boost::json::object> Call(std::string_view method, std::string_view target, const boost::json::object* body,
                                   Millis limit) override;
  void Abort() override { http_.Abort(); }
  std::unique_ptr<Transport> Another() const override {
    return std::make_unique<HttpTransport>(http_.endpoint(), http_.token());
  }
  const Endpoint& endpoint() const override { return http_.endpoint(); }

 private:
  HttpClient http_;
};

}  // namespace tocsin::cli
