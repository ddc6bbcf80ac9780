#include "sinks/webhook/answer.h"

#include <algorithm>

#include <boost/asio/buffer.hpp>

namespace tocsin::webhook {
namespace {

namespace http = boost::beast::http;

constexpr size_t kPhraseBytesMax = 64;
constexpr size_t kRetryAfterBytesMax = 64;
constexpr int kSwitching = 101;
constexpr int kInterim = 1;  // status / 100

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

size_t AnswerReader::Parser::on_chunk_body_impl(std::uint64_t /*remain*/, Text body, Error& error) {
  return on_body_impl(body, error);
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

bool AnswerReader::HasStatus() const { return parser_->is_header_done() && answer_.status / 100 != kInterim; }

AnswerReader::State AnswerReader::Feed(std::string_view bytes) {
  started_ = started_ || !bytes.empty();
  pending_.append(bytes);
  return Parse();
}

AnswerReader::State AnswerReader::Parse() {
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

}  // namespace tocsin::webhook
