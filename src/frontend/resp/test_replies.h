// ReadReply: the client's side of RESP, for tests: takes replies apart and judges their form. Stricter than clients
// are.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tocsin::resp {

struct Reply {
  char type = '\0';
  std::string text;          // of what is no array or map; empty for null
  std::vector<Reply> items;  // a map's keys and values in turn
  bool null = false;

  const Reply& operator[](size_t i) const { return items.at(i); }
};

enum class Form { kWhole, kMore, kBad };

struct ReadAnswer {
  Form form = Form::kMore;
  size_t size = 0;  // bytes of the reply, where it is whole
  Reply reply;
};

class ReplyReader {
 public:
  explicit ReplyReader(std::string_view bytes) : bytes_(bytes) {}

  Form Read(Reply& reply, int depth = 0) {
    std::string_view line;
    if (const Form form = Line(line); form != Form::kWhole) return form;
    if (line.empty() || depth > 8) return Form::kBad;
    reply.type = line.front();
    line.remove_prefix(1);
    switch (reply.type) {
      case '+':
      case '-':
        reply.text = line;
        return line.empty() ? Form::kBad : Form::kWhole;
      case ':':
        reply.text = line;
        return Whole(line) ? Form::kWhole : Form::kBad;
      case ',':
        reply.text = line;
        return line.contains('.') ? Form::kWhole : Form::kBad;
      case '#':
        reply.text = line;
        return line == "t" || line == "f" ? Form::kWhole : Form::kBad;
      case '_':
        reply.null = true;
        return line.empty() ? Form::kWhole : Form::kBad;
      case '$':
        return Bulk(line, reply);
      case '*':
      case '%':
        return Items(line, reply, depth);
      default:
        return Form::kBad;
    }
  }
  size_t at() const { return at_; }

 private:
  /// Without its end. A line has no control bytes.
  Form Line(std::string_view& line) {
    const size_t end = bytes_.find('\r', at_);
    line = bytes_.substr(at_, end == std::string_view::npos ? end : end - at_);
    if (std::ranges::any_of(line, [](char c) { return static_cast<unsigned char>(c) < ' '; })) return Form::kBad;
    if (end == std::string_view::npos || end + 1 == bytes_.size()) return Form::kMore;
    at_ = end + 2;
    return bytes_[end + 1] == '\n' ? Form::kWhole : Form::kBad;
  }
  static std::optional<int64_t> Whole(std::string_view text) {
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || at != end) return std::nullopt;
    return value;
  }
  Form Bulk(std::string_view line, Reply& reply) {
    const auto length = Whole(line);
    if (!length || *length < -1) return Form::kBad;
    reply.null = *length == -1;
    if (reply.null) return Form::kWhole;
    const auto size = static_cast<size_t>(*length);
    if (bytes_.size() - at_ < size + 2) return Form::kMore;
    reply.text = bytes_.substr(at_, size);
    at_ += size + 2;
    return bytes_.substr(at_ - 2, 2) == "\r\n" ? Form::kWhole : Form::kBad;
  }
  Form Items(std::string_view line, Reply& reply, int depth) {
    const auto count = Whole(line);
    if (!count || *count < 0) return Form::kBad;
    const auto items = static_cast<size_t>(*count) * (reply.type == '%' ? 2 : 1);
    for (size_t i = 0; i < items; ++i) {
      if (const Form form = Read(reply.items.emplace_back(), depth + 1); form != Form::kWhole) return form;
    }
    return Form::kWhole;
  }

  std::string_view bytes_;
  size_t at_ = 0;
};

/// The first reply in `bytes`.
inline ReadAnswer ReadReply(std::string_view bytes) {
  ReadAnswer answer;
  if (bytes.empty()) return answer;
  ReplyReader reader(bytes);
  answer.form = reader.Read(answer.reply);
  answer.size = answer.form == Form::kWhole ? reader.at() : 0;
  return answer;
}

}  // namespace tocsin::resp
