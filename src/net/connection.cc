#include "net/connection.h"

#include <exception>

#include "base/log.h"

namespace tocsin::net {

void Connection::Caught() noexcept {
  failed_ = true;
  exceptions_.Add();
  try {
    throw;
  } catch (const std::exception& exception) {
    LogError("closed a connection because its handler threw an exception (a bug; please report it): {}",
             exception.what());
  } catch (...) {
    LogError("closed a connection because its handler threw an unknown exception (a bug; please report it)");
  }
}

std::shared_ptr<metrics::Counter> ExceptionCounter(metrics::Registry& metrics, std::string door) {
  return metrics.GetCounter("tocsin_connection_exceptions_total",
                            "Connections that were closed because their handler threw an exception.",
                            {{"door", std::move(door)}});
}

}  // namespace tocsin::net
