#include "frontend/http/budget.h"

namespace tocsin::http {

Budget::Budget(size_t bytes_max, metrics::Registry& metrics)
    : bytes_max_(bytes_max), registration_(metrics.AddCollector([this](metrics::Sink& sink) {
        sink.Sample(metrics::Kind::kGauge, "tocsin_http_memory_bytes",
                    "Bytes of request bodies that are not answered yet, and of answers that are not sent yet.", {},
                    static_cast<double>(bytes()));
      })) {}

bool Charge::Reach(size_t bytes) {
  if (bytes <= bytes_) return true;
  const size_t more = bytes - bytes_;
  const size_t before = budget_.bytes_.fetch_add(more, std::memory_order_relaxed);
  if (bytes > Budget::kSmallBytes && before + more > bytes_max_) {
    budget_.bytes_.fetch_sub(more, std::memory_order_relaxed);
    return false;
  }
  bytes_ = bytes;
  return true;
}

void Charge::Clear() {
  if (bytes_ > 0) budget_.bytes_.fetch_sub(bytes_, std::memory_order_relaxed);
  bytes_ = 0;
}

}  // namespace tocsin::http
