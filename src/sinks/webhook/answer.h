// AnswerReader: reads one answer of a receiver, whatever pieces it comes in, within bounds: 16 KiB of headers, and as
// much of the body as its user allows. Interim answers (1xx) are skipped. Pure: no socket, no time. Owned by a
// Connection, used again for each of its requests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/beast/http/basic_parser.hpp>

namespace tocsin::webhook {

constexpr size_t kAnswerHeadBytesMax = 16 << 10;

struct Answer {
  int status = 0;
  std::string phrase;       // printable, cut short
  std::string retry_after;  // as it came; empty: none
  std::string body;         // where it is kept
  bool whole = false;       // the body came to its end within the bound
  bool keep_alive = false;  // the connection may carry the next request
};

class AnswerReader {
 public:
  enum class State : uint8_t {
    kMore,    // give it what comes next
    kDone,    // answer() is complete, as far as anybody wants to read it
    kBroken,  // what came is no answer; trouble() says why
  };
  struct Bounds {
    size_t body_bytes = 0;
    bool keep_body = false;
  };

  void Begin(Bounds bounds);
  State Feed(std::string_view bytes);
  /// The receiver has closed the connection, or it was lost: kDone where the answer's status is known all the same.
  /// `clean`: by its own will, so that a body which ends there may be whole.
  State End(bool clean);

  /// Whether anything came since Begin.
  bool started() const { return started_; }
  const Answer& answer() const { return answer_; }
  /// It holds nothing of it then: a body may be large, and the connection idle for long.
  Answer TakeAnswer() { return std::exchange(answer_, {}); }
  const std::string& trouble() const { return trouble_; }

 private:
  class Parser final : public boost::beast::http::basic_parser<false> {
   public:
    explicit Parser(AnswerReader& reader);

   private:
    using Error = boost::beast::error_code;
    using Text = boost::beast::string_view;
    using Length = boost::optional<std::uint64_t>;

    // The names are Beast's.
    void on_request_impl(boost::beast::http::verb, Text, Text, int, Error&) override {}
    void on_response_impl(int status, Text phrase, int version, Error& error) override;
    void on_field_impl(boost::beast::http::field name, Text name_text, Text value, Error& error) override;
    void on_header_impl(Error&) override {}
    void on_body_init_impl(const Length& length, Error& error) override;
    size_t on_body_impl(Text body, Error& error) override;
    void on_chunk_header_impl(std::uint64_t, Text, Error&) override {}
    size_t on_chunk_body_impl(std::uint64_t remain, Text body, Error& error) override;
    void on_finish_impl(Error&) override {}

    AnswerReader& reader_;
  };

  /// Whether the header of the answer itself, not of an interim one, is there.
  bool HasStatus() const;
  State Parse();
  State Finish(bool whole);
  State Break(std::string_view why);

  Bounds bounds_;
  std::optional<Parser> parser_;
  std::string pending_;    // came, and is not parsed yet
  size_t head_bytes_ = 0;  // parsed before the answer's body
  size_t body_bytes_ = 0;
  bool started_ = false;
  Answer answer_;
  std::string trouble_;
};

}  // namespace tocsin::webhook
