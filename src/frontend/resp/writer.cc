#include "frontend/resp/writer.h"

#include <algorithm>
#include <charconv>

namespace tocsin::resp {

void Writer::Head(char type, int64_t value) {
  char text[24];
  text[0] = type;
  char* end = std::to_chars(text + 1, std::end(text), value).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out_.append(text, static_cast<size_t>(end - text));
}

void Writer::Simple(std::string_view text) {
  out_ += '+';
  out_ += text;
  out_ += "\r\n";
}

void Writer::Text(std::string_view bytes) {
  Head('$', static_cast<int64_t>(bytes.size()));
  out_ += bytes;
  out_ += "\r\n";
}

void Writer::Flag(bool value) {
  if (!resp3_) return Number(value ? 1 : 0);
  out_ += value ? "#t\r\n" : "#f\r\n";
}

void Writer::Real(double value) {
  const std::string text = fmt::format("{:.3f}", value);
  if (!resp3_) return Text(text);
  out_ += ',';
  out_ += text;
  out_ += "\r\n";
}

void Writer::Fail(const Error& error) {
  out_ += '-';
  out_ += RowOf(error.code).resp;
  out_ += ' ';
  const size_t begin = out_.size();
  out_ += error.message;
  // A message may quote what a client sent; an error is one line.
  std::replace_if(
      out_.begin() + static_cast<std::ptrdiff_t>(begin), out_.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  out_ += "\r\n";
}

}  // namespace tocsin::resp
