#include "sinks/kafka/headers.h"

#include "spi/delivery_headers.h"

namespace tocsin::kafka {

rd_kafka_headers_t* MakeHeaders(std::string_view topic, const JobView& job) {
  constexpr size_t kOurs = 6;
  rd_kafka_headers_t* headers = rd_kafka_headers_new(job.headers.size() + kOurs);
  const auto add = [headers](std::string_view name, std::string_view value) {
    const char* bytes = value.data() == nullptr ? "" : value.data();  // null is not the same as an empty value
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), bytes,
                        static_cast<ssize_t>(value.size()));
  };
  for (const HeaderView& header : job.headers) add(header.name, header.value);
  delivery_header::ForEach(topic, job, add);
  return headers;
}

}  // namespace tocsin::kafka
