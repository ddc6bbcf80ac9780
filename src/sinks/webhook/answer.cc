#include "sinks/webhook/answer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include <boost/asio/buffer.hpp>

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
  eager(true);
  header_limit(kAnswerHeadBytesMax);
  body_limit(boost::none);  // on_body_init_impl and on_body_impl have their own
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

void AnswerReader::Parser::on_body_init_impl(const Length& length, Error& error) {
  if (length && *length > reader_.bounds_.body_bytes) error = http::error::body_limit;
}

size_t AnswerReader::Parser::on_body_impl(Text body, Error& error) {
  reader_.body_bytes_ += body.size();
  if (reader_.body_bytes_ > reader_.bounds_.body_bytes) {
    error = http::error::body_limit;
    return 0;
  }
  if (reader_.bounds_.keep_body) reader_.answer_.body.append(body.data(), body.size());
  return body.size();
}

void AnswerReader::Begin(Bounds bounds) {
  bounds_ = bounds;
  parser_.emplace(*this);
  pending_.clear();
  head_bytes_ = 0;
  body_bytes_ = 0;
  started_ = false;
  answer_ = {};
  error_.clear();
}

AnswerReader::State AnswerReader::Feed(std::string_view bytes) {
  started_ = started_ || !bytes.empty();
  pending_.append(bytes);
  while (!pending_.empty()) {
    boost::beast::error_code error;
    const bool head = !parser_->is_header_done();
    const size_t used = parser_->put(boost::asio::const_buffer(pending_.data(), pending_.size()), error);
    pending_.erase(0, used);
    if (head) head_bytes_ += used;
    if (error && error != http::error::need_more) {
      // The body is malformed or too long, but the status says what the receiver decided.
      return HasStatus() ? Finish(false) : Break(error.message());
    }
    const bool over = parser_->is_done();
    if (over) {
      if (HasStatus()) return Finish(true);
      if (answer_.status == kSwitching) return Break("it changes the protocol");
      answer_ = {};
      parser_.emplace(*this);
    }
    if (HasStatus() && parser_->content_length().value_or(0) > bounds_.body_bytes) return Finish(false);
    if (!HasStatus() && head_bytes_ + pending_.size() > kAnswerHeadBytesMax) return Break("its headers are too long");
    if (!over && (error || used == 0)) break;
  }
  return State::kMore;
}

AnswerReader::State AnswerReader::End(bool clean) {
  if (!started_) return Break("it closed the connection without an answer");
  if (!HasStatus()) return Break("it closed the connection within the headers of its answer");
  boost::beast::error_code error;
  if (!parser_->is_done()) parser_->put_eof(error);
  return Finish(clean && !error);
}

AnswerReader::State AnswerReader::Finish(bool whole) {
  answer_.whole = whole;
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

Delivered VerdictOf(const Answer& answer, bool retry_4xx, sys_seconds now) {
  const int status = answer.status;
  if (status / 100 == 2) return {};
  Delivered delivered = Retry(fmt::format("the receiver answered {}", status));
  if (!answer.phrase.empty()) delivered.reason += " " + answer.phrase;
  // Not refused for good: a proxy may redirect to an error page while the receiver is down.
  if (status / 100 == 3) delivered.reason += ": redirects are not followed";
  const bool passing = status == kTimeout || status == kTooEarly || status == kTooMany;
  if (status / 100 == 4 && !passing && !retry_4xx) delivered.outcome = DeliverOutcome::kRefused;
  if (delivered.outcome != DeliverOutcome::kRetry) return delivered;
  // A delay of 0 leaves the back-off in force: retries without a pause would use up all attempts in a moment.
  if (const auto after = ParseRetryAfter(answer.retry_after, now); after && *after > seconds(0)) {
    delivered.delay = std::min(std::chrono::duration_cast<Millis>(*after), kRetryDelayMax);
  }
  return delivered;
}

}  // namespace tocsin::webhook
