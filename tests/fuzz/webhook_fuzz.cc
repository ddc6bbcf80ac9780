// Whatever a receiver answers, in whatever pieces, is read within bounds and means something; and whatever text is set
// as a URL either is refused or gives parts that cannot break a request.
#include <string>

#include "base/result.h"
#include "sinks/webhook/answer.h"
#include "sinks/webhook/batch.h"
#include "sinks/webhook/target.h"

using namespace tocsin;
using namespace tocsin::webhook;

namespace {

constexpr size_t kBodyMax = 64;

void ReadAnswer(std::string_view bytes, size_t piece) {
  AnswerReader reader;
  reader.Begin({.body_bytes = kBodyMax, .keep_body = true});
  auto state = AnswerReader::State::kMore;
  while (state == AnswerReader::State::kMore && !bytes.empty()) {
    state = reader.Feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  if (state == AnswerReader::State::kMore) state = reader.End(true);
  TOCSIN_CHECK(state != AnswerReader::State::kMore);
  if (state == AnswerReader::State::kBroken) {
    TOCSIN_CHECK(!reader.error().empty());
    return;
  }
  const Answer& answer = reader.answer();
  TOCSIN_CHECK(answer.status / 100 != 1);
  TOCSIN_CHECK(answer.body.size() <= kBodyMax);
  TOCSIN_CHECK(answer.whole || !answer.keep_alive);
  const Delivered delivered = VerdictOf(answer, {}, std::chrono::sys_seconds(std::chrono::seconds(1'700'000'000)));
  TOCSIN_CHECK((delivered.outcome == DeliverOutcome::kConfirmed) == delivered.reason.empty());
  TOCSIN_CHECK(!delivered.delay || (*delivered.delay >= Millis(0) && *delivered.delay <= kRetryDelayMax));
}

void ReadUrl(std::string_view text) {
  const auto target = ParseTarget(text);
  if (!target) {
    TOCSIN_CHECK(target.error().field == "delivery.url");
    return;
  }
  TOCSIN_CHECK(target->port != 0 && !target->host.empty() && target->resource.starts_with('/'));
  const auto plain = [](char c) { return c > 0x20 && c < 0x7f; };
  TOCSIN_CHECK(std::ranges::all_of(target->resource, plain) && std::ranges::all_of(target->authority, plain));
  TOCSIN_CHECK(target->host.find_first_of("@%/?#\\ ") == std::string::npos);
}

void ReadBatch(std::string_view body) {
  JobView job;
  job.own_id = "a";
  const JobView* const jobs[] = {&job, &job};
  for (const Delivered& delivered : ReadOutcomes(body, jobs)) {
    TOCSIN_CHECK((delivered.outcome == DeliverOutcome::kConfirmed) == delivered.reason.empty());
    TOCSIN_CHECK(delivered.reason.size() < 512);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ReadAnswer(text, 1);
  ReadAnswer(text, 100'000);
  ReadUrl(text);
  ReadBatch(text);
  (void)Networks::Parse(text);
  return 0;
}
