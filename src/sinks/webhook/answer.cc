#include "sinks/webhook/answer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include <boost/asio/buffer.hpp>

#include "base/comma_list.h"
#include "base/text.h"
#include "sinks/webhook/batch.h"

namespace tocsin::webhook {
namespace {

namespace http = boost::beast::http;
using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr size_t kPhraseBytesMax = 64;
constexpr size_t kRetryAfterBytesMax = 64;
constexpr int kSwitching = 101;
constexpr int kTimeout = 408;
constexpr int kTooEarly = 425;
constexpr int kTooMany = 429;

/// Only digits.
std::optional<int64_t> Number(std::string_view text) {
  int64_t number = 0;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return INT64_MAX;
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "Sun, 06 Nov 1994 08:49:37 GMT". The day of the week is ignored.
std::optional<sys_seconds> Date(const std::string& text) {
  constexpr const char* kForm = "%a, %d %b %Y %H:%M:%S GMT";
  constexpr size_t kDayBytes = 3;
  std::tm parts{};
  if (strptime(text.c_str(), kForm, &parts) == nullptr) return std::nullopt;
  const sys_seconds time{seconds(timegm(&parts))};
  // strptime takes more than HTTP allows, such as 31 Feb, which timegm has made another date.
  std::array<char, 64> exact{};
  const size_t size = std::strftime(exact.data(), exact.size(), kForm, &parts);
  if (std::string_view(exact.data(), size).substr(kDayBytes) != std::string_view(text).substr(kDayBytes)) {
    return std::nullopt;
  }
  return time;
}

}  // namespace

AnswerReader::Parser::Parser(AnswerReader& reader) : reader_(reader) {
  eager(false);  // it stops after the head
  header_limit(kAnswerHeadBytesMax);
}

void AnswerReader::Parser::on_response_impl(int status, Text phrase, int /*version*/, Error& /*error*/) {
  Answer& answer = reader_.answer_;
  answer.status = status;
  answer.phrase.assign(phrase.data(), std::min<size_t>(phrase.size(), kPhraseBytesMax));
  std::erase_if(answer.phrase, [](char c) { return c < 0x20 || c > 0x7e; });
}

void AnswerReader::Parser::on_field_impl(http::field name, Text /*name_text*/, Text value, Error& /*error*/) {
  std::string& kept = reader_.answer_.retry_after;
  if (name != http::field::retry_after || !kept.empty() || value.size() > kRetryAfterBytesMax) return;
  kept.assign(value.data(), value.size());
}

void AnswerReader::Begin(Bounds bounds) {
  bounds_ = bounds;
  parser_.emplace(*this);
  pending_.clear();
  head_bytes_ = 0;
  chunks_ = {};
  started_ = false;
  answer_ = {};
  error_.clear();
}

AnswerReader::State AnswerReader::Feed(std::string_view bytes) {
  started_ = started_ || !bytes.empty();
  pending_.append(bytes);
  if (const State state = FeedHead(); state != State::kDone) return state;
  return FeedBody();
}

/// kDone if HasStatus.
AnswerReader::State AnswerReader::FeedHead() {
  while (!HasStatus()) {
    if (pending_.empty()) return State::kMore;
    boost::beast::error_code error;
    const size_t used = parser_->put(boost::asio::const_buffer(pending_.data(), pending_.size()), error);
    pending_.erase(0, used);
    head_bytes_ += used;
    if (error && error != http::error::need_more) return Break(error.message());
    if (HasStatus()) break;
    if (head_bytes_ + pending_.size() > kAnswerHeadBytesMax) return Break("its headers are too long");
    if (!parser_->is_header_done()) {
      if (error || used == 0) return State::kMore;
      continue;
    }
    if (answer_.status == kSwitching) return Break("it changes the protocol");
    answer_ = {};
    parser_.emplace(*this);
  }
  return State::kDone;
}

/// A body that is malformed or too long does not break the answer: the status says what the receiver decided.
AnswerReader::State AnswerReader::FeedBody() {
  if (parser_->is_done()) return Finish(true);  // the head announces no body
  if (parser_->chunked()) {
    std::string_view rest = pending_;
    const auto step = chunks_.Decode(rest, answer_.body, bounds_.body_bytes);
    pending_.erase(0, pending_.size() - rest.size());
    return step == net::ChunkedDecoder::Step::kMore ? State::kMore : Finish(step == net::ChunkedDecoder::Step::kDone);
  }
  const auto length = parser_->content_length();
  if (length && *length > bounds_.body_bytes) return Finish(false);
  const size_t room = (length ? *length : bounds_.body_bytes) - answer_.body.size();
  const size_t taken = std::min(room, pending_.size());
  answer_.body.append(pending_, 0, taken);
  pending_.erase(0, taken);
  if (length) return answer_.body.size() == *length ? Finish(true) : State::kMore;
  return pending_.empty() ? State::kMore : Finish(false);
}

AnswerReader::State AnswerReader::End(bool clean) {
  if (!started_) return Break("it closed the connection without an answer");
  if (!HasStatus()) return Break("it closed the connection within the headers of its answer");
  return Finish(clean && parser_->need_eof());
}

AnswerReader::State AnswerReader::Finish(bool whole) {
  answer_.whole = whole;
  if (!bounds_.keep_body) answer_.body = {};
  // Bytes after the answer were not asked for, and could be taken for the next answer.
  answer_.keep_alive = whole && pending_.empty() && parser_->keep_alive();
  return State::kDone;
}

AnswerReader::State AnswerReader::Break(std::string_view why) {
  error_ = why;
  return State::kBroken;
}

std::optional<seconds> ParseRetryAfter(std::string_view text, sys_seconds now) {
  constexpr int64_t kMost = std::chrono::seconds(std::chrono::years(100)).count();  // no sum with it overflows
  if (const auto number = Number(text)) return seconds(std::min(*number, kMost));
  const auto date = Date(std::string(text));
  if (!date) return std::nullopt;
  return std::max(*date - now, seconds(0));
}

Result<FinalStatuses> FinalStatuses::Parse(std::string_view text) {
  FinalStatuses statuses;
  for (const std::string_view status : CommaList(text)) TOCSIN_TRY(statuses.Add(status));
  return statuses;
}

Status FinalStatuses::Add(std::string_view text) {
  constexpr int64_t kFirst = 300;  // 2xx confirms
  constexpr int64_t kLast = 599;
  if (text == "4xx") {
    all_4xx_ = true;
    return {};
  }
  const std::optional<int64_t> status = Number(text);
  if (!status || *status < kFirst || *status > kLast) {
    return FailField(
        Code::kInvalidArgument, "delivery.final_statuses",
        "delivery.final_statuses: \"{}\" is no status: it takes 4xx and numbers from {} to {}, with commas "
        "between them",
        Shown(text), kFirst, kLast);
  }
  statuses_.push_back(static_cast<int>(*status));
  return {};
}

bool FinalStatuses::Has(int status) const {
  if (std::ranges::find(statuses_, status) != statuses_.end()) return true;
  const bool passing = status == kTimeout || status == kTooEarly || status == kTooMany;
  return all_4xx_ && status / 100 == 4 && !passing;
}

Delivered VerdictOf(const Answer& answer, const FinalStatuses& final_statuses, sys_seconds now) {
  const int status = answer.status;
  if (status / 100 == 2) return {};
  Delivered delivered = Retry(fmt::format("the receiver answered {}", status));
  if (!answer.phrase.empty()) delivered.reason += " " + answer.phrase;
  // Not refused for good: a proxy may redirect to an error page while the receiver is down.
  if (status / 100 == 3) delivered.reason += ": redirects are not followed";
  if (final_statuses.Has(status)) delivered.outcome = DeliverOutcome::kRefused;
  if (delivered.outcome != DeliverOutcome::kRetry) return delivered;
  // A delay of 0 leaves the back-off in force: retries without a pause would use up all attempts in a moment.
  if (const auto after = ParseRetryAfter(answer.retry_after, now); after && *after > seconds(0)) {
    delivered.delay = std::min(std::chrono::duration_cast<Millis>(*after), kRetryDelayMax);
  }
  return delivered;
}

}  // namespace tocsin::webhook
