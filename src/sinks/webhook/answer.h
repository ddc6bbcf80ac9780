// AnswerReader: parses one answer of a receiver, in whatever pieces it comes, within bounds: 16 KiB of headers, and as
// much of the body as its user allows. Interim answers (1xx) are skipped. Pure: no socket, no time. Owned by a
// Connection, which uses it again for each request. VerdictOf: what the answer means for a job.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/beast/http/basic_parser.hpp>

#include "base/result.h"
#include "net/chunked.h"
#include "spi/sink.h"

namespace tocsin::webhook {

constexpr size_t kAnswerHeadBytesMax = 16 << 10;

struct Answer {
  int status = 0;
  std::string phrase;       // printable, cut short
  std::string retry_after;  // as it came; empty: none
  std::string body;         // if Bounds::keep_body
  bool whole = false;       // the body ended within the bound
  bool keep_alive = false;  // the connection may carry the next request
};

class AnswerReader {
 public:
  enum class State : uint8_t {
    kMore,    // needs the next bytes
    kDone,    // the answer is complete, as far as its user reads it
    kBroken,  // this is no answer; error() says why
  };
  struct Bounds {
    size_t body_bytes = 0;
    bool keep_body = false;  // otherwise it is read and forgotten
  };

  void Begin(Bounds bounds);
  State Feed(std::string_view bytes);
  /// The receiver has closed the connection, or it was lost. kDone if the answer's status is known all the same.
  /// `clean`: the receiver closed it, so a body that ends there may be whole.
  State End(bool clean);

  /// Whether anything came since Begin.
  bool started() const { return started_; }
  const Answer& answer() const { return answer_; }
  /// The reader keeps nothing of it: a body may be large, and the connection idle for long.
  Answer TakeAnswer() { return std::exchange(answer_, {}); }
  const std::string& error() const { return error_; }

 private:
  /// Reads the head of an answer.
  /// Reads the head of an answer.
  class Parser final : public boost::beast::http::basic_parser<false> {
   public:
    explicit Parser(AnswerReader& reader);

   private:
    using Error = boost::beast::error_code;
    using Text = boost::beast::string_view;
    using Length = boost::optional<std::uint64_t>;

    // Overrides of Beast.
    void on_request_impl(boost::beast::http::verb, Text, Text, int, Error&) override {}
    void on_response_impl(int status, Text phrase, int version, Error& error) override;
    void on_field_impl(boost::beast::http::field name, Text name_text, Text value, Error& error) override;
    void on_header_impl(Error&) override {}
    void on_finish_impl(Error&) override {}
    // It never gets bytes of a body.
    void on_body_init_impl(const Length&, Error&) override {}
    size_t on_body_impl(Text, Error&) override { return 0; }
    void on_chunk_header_impl(std::uint64_t, Text, Error&) override {}
    size_t on_chunk_body_impl(std::uint64_t, Text, Error&) override { return 0; }

    AnswerReader& reader_;
  };

  /// Whether the head of the answer itself, not of an interim one, is complete.
  bool HasStatus() const { return parser_->is_header_done() && answer_.status / 100 != kInterim; }
  State FeedHead();
  State FeedBody();
  State Finish(bool whole);
  State Break(std::string_view why);

  static constexpr int kInterim = 1;  // status / 100

  Bounds bounds_;
  std::optional<Parser> parser_;
  std::string pending_;    // received, not parsed yet
  size_t head_bytes_ = 0;  // parsed before the body, interim answers included
  net::ChunkedDecoder chunks_;
  bool started_ = false;
  Answer answer_;
  std::string error_;
};

/// The statuses by which a receiver refuses a job for good. A value.
class FinalStatuses {
 public:
  /// None.
  FinalStatuses() = default;
  /// Such as "410,422,4xx", where 4xx is all of 400 to 499 that do not pass by themselves; may be empty.
  /// kInvalidArgument names delivery.final_statuses.
  static Result<FinalStatuses> Parse(std::string_view text);

  bool Has(int status) const;

 private:
  Status Add(std::string_view text);

  std::vector<int> statuses_;
  bool all_4xx_ = false;
};

/// The outcome of a job: 2xx confirms, and a final status refuses for good. Everything else is tried again, also 3xx,
/// because redirects are not followed, and 404, because an ingress answers it during a deploy; after its Retry-After if
/// it has one, kRetryDelayMax at most.
Delivered VerdictOf(const Answer& answer, const FinalStatuses& final_statuses, std::chrono::sys_seconds now);

/// The header Retry-After: seconds, or a date of HTTP ("Sun, 06 Nov 1994 08:49:37 GMT"). Nothing if it is neither;
/// never below zero.
std::optional<std::chrono::seconds> ParseRetryAfter(std::string_view text, std::chrono::sys_seconds now);

}  // namespace tocsin::webhook
