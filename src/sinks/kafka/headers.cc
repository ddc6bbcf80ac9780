#include "sinks/kafka/headers.h"

#include <array>
#include <string>

#include <fmt/compile.h>

#include "spi/delivery_headers.h"

namespace tocsin::kafka {
namespace {

constexpr size_t kOurs = 6;

void Add(rd_kafka_headers_t* headers, std::string_view name, std::string_view value) {
  // A value of null would be another thing than an empty one.
  const char* bytes = value.data() == nullptr ? "" : value.data();
  rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), bytes,
                      static_cast<ssize_t>(value.size()));
}

void AddNumber(rd_kafka_headers_t* headers, std::string_view name, int64_t value) {
  std::array<char, 24> digits{};
  const auto end = fmt::format_to(digits.begin(), FMT_COMPILE("{}"), value);
  Add(headers, name, {digits.begin(), end});
}

}  // namespace

rd_kafka_headers_t* MakeHeaders(std::string_view topic, const JobView& job) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(job.headers.size() + kOurs);
  for (const HeaderView& header : job.headers) Add(headers, header.name, header.value);
  Add(headers, delivery_header::kTopic, topic);
  Add(headers, delivery_header::kJobId, job.Id());
  AddNumber(headers, delivery_header::kAttempt, job.attempt);
  if (job.due != kNever) AddNumber(headers, delivery_header::kDueMs, ToMs(job.due));
  Add(headers, delivery_header::kToken, TokenText(job.token));
  if (!job.key.empty()) Add(headers, delivery_header::kKey, job.key);
  return headers;
}

}  // namespace tocsin::kafka
