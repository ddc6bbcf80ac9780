#include "http_answers.h"

#include <charconv>
#include <optional>

#include <boost/json/parse.hpp>
#include <zlib.h>

#include "base/result.h"
#include "base/text.h"

namespace tocsin::http {
namespace {

constexpr size_t kUnpackedMax = 1 << 20;

struct Head {
  int status = 0;
  std::optional<size_t> length;
  std::string type;
  bool close = false;
  bool gzip = false;
};

template <class T>
T Number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  TOCSIN_CHECK(error == std::errc{} && end == text.data() + text.size());
  return value;
}

/// `text`: the status line and the fields, each with its CRLF.
Head ParseHead(std::string_view text) {
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  TOCSIN_CHECK(text.starts_with(kVersion) && text.size() > 13 && text[12] == ' ');
  Head head{.status = Number<int>(text.substr(kVersion.size(), 3))};
  TOCSIN_CHECK(head.status == 100 || (head.status >= 200 && head.status < 600));
  for (text.remove_prefix(text.find("\r\n") + 2); !text.empty(); text.remove_prefix(text.find("\r\n") + 2)) {
    const std::string_view line = text.substr(0, text.find("\r\n"));
    const size_t colon = line.find(": ");
    TOCSIN_CHECK(colon != std::string_view::npos && colon > 0);
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = line.substr(colon + 2);
    for (const char c : line) TOCSIN_CHECK(c >= ' ' && c < 0x7f);
    if (name == "Content-Length") {
      TOCSIN_CHECK(!head.length);
      head.length = Number<size_t>(value);
    }
    if (name == "Content-Type") head.type = value;
    if (name == "Content-Encoding") head.gzip = value == "gzip";
    if (name == "Connection") head.close = value == "close";
  }
  return head;
}

std::string Unpack(std::string_view packed) {
  z_stream stream{};
  TOCSIN_CHECK(inflateInit2(&stream, 15 + 16) == Z_OK);
  static std::string out;
  out.resize(kUnpackedMax);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  TOCSIN_CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0);
  const std::string unpacked(out, 0, stream.total_out);
  inflateEnd(&stream);
  return unpacked;
}

void CheckJson(const Reply& reply) {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(reply.body, error);
  TOCSIN_CHECK(!error && value.is_object());
  const auto& root = value.as_object();
  if (const auto* refusal = root.if_contains("error")) {
    TOCSIN_CHECK(reply.status >= 400 && root.size() == 1);
    TOCSIN_CHECK(!refusal->at("code").as_string().empty() && !refusal->at("message").as_string().empty());
    for (const auto& field : refusal->as_object()) {
      TOCSIN_CHECK(field.key() == "code" || field.key() == "message" || field.key() == "field");
    }
  } else {
    // A submit that stored nothing says for each job why.
    TOCSIN_CHECK(reply.status < 300 || root.contains("jobs"));
  }
}

/// False if no answer is complete.
bool TakeOne(std::string& bytes, bool head_only, Reply& reply) {
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const Head head = ParseHead(std::string_view(bytes).substr(0, end + 2));
  TOCSIN_CHECK(head.length.has_value() == (head.status != 100));
  const size_t body = head_only ? 0 : head.length.value_or(0);
  if (bytes.size() < end + 4 + body) return false;
  reply = {.status = head.status, .body = bytes.substr(end + 4, body), .close = head.close};
  bytes.erase(0, end + 4 + body);
  // Refused before it was known to be a HEAD: the answer has its body, and is the last.
  if (head_only && head.close) bytes.clear();
  if (head.status == 100 || head_only) return true;
  if (head.gzip) reply.body = Unpack(reply.body);
  TOCSIN_CHECK(IsUtf8(reply.body));
  TOCSIN_CHECK(head.type == "application/json" || head.type.starts_with("text/plain"));
  if (head.type == "application/json") CheckJson(reply);
  return true;
}

}  // namespace

std::deque<Reply> TakeAnswers(std::string& bytes, std::deque<bool>& heads) {
  std::deque<Reply> replies;
  Reply reply;
  while (TakeOne(bytes, !heads.empty() && heads.front(), reply)) {
    if (reply.status == 100) continue;
    if (!heads.empty()) heads.pop_front();
    replies.push_back(std::move(reply));
  }
  return replies;
}

}  // namespace tocsin::http
