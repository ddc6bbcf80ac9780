// Context: what all parts of one client share. Owned by the client, which outlives them; on its thread.
#pragma once

#include <memory>
#include <random>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>

#include "clients/redis/client.h"
#include "clients/redis/figures.h"

namespace tocsin::redis {

struct Context {
  Context(boost::asio::io_context& loop, Options settings, std::unique_ptr<boost::asio::ssl::context> tls_context,
          metrics::Registry& registry)
      : io(loop), options(std::move(settings)), tls(std::move(tls_context)), figures(registry) {}

  boost::asio::io_context& io;
  const Options options;
  const std::unique_ptr<boost::asio::ssl::context> tls;  // null without TLS
  Figures figures;
  std::minstd_rand random{std::random_device()()};
};

}  // namespace tocsin::redis
