#include "cli/text/output.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <system_error>

#include <boost/json/serialize.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

namespace tocsin::cli {
namespace {

constexpr size_t kColumnMin = 8;
constexpr size_t kLastMin = 16;

bool BeginsCodePoint(char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }

/// The size of the code point at `at` of well-formed UTF-8 if a terminal may obey it: a control character of ISO 8859
/// (C1), or one that changes the direction of the text. 0 if it is harmless.
size_t ControlAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : uint8_t{0}; };
  if (byte(0) == 0xC2 && byte(1) < 0xA0) return 2;
  if (byte(0) != 0xE2) return 0;
  const bool embedding = byte(1) == 0x80 && byte(2) >= 0xAA && byte(2) <= 0xAE;  // U+202A to U+202E
  const bool isolate = byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9;    // U+2066 to U+2069
  return embedding || isolate ? 3 : 0;
}

/// Of the two or three bytes that ControlAt found.
unsigned CodePointOf(std::string_view bytes) {
  unsigned code = static_cast<uint8_t>(bytes[0]) & (bytes.size() == 2 ? 0x1FU : 0x0FU);
  for (const char c : bytes.substr(1)) code = code << 6 | (static_cast<uint8_t>(c) & 0x3FU);
  return code;
}

/// Escapes characters that are valid in JSON but that a terminal may obey; a parser reads the same text.
void AppendJsonText(std::string& out, std::string_view text) {
  const std::string quoted = boost::json::serialize(boost::json::string_view(text.data(), text.size()));
  for (size_t i = 0; i < quoted.size();) {
    const size_t size = quoted[i] == 0x7F ? 1 : ControlAt(quoted, i);
    if (size == 0) {
      out += quoted[i++];
      continue;
    }
    out += fmt::format("\\u{:04x}", size == 1 ? 0x7FU : CodePointOf(std::string_view(quoted).substr(i, size)));
    i += size;
  }
}

/// Not json::serialize, which writes 0.5 as 5E-1.
void AppendJson(std::string& out, const boost::json::value& value) {
  if (value.is_object()) {
    out += '{';
    for (const auto& [name, member] : value.get_object()) {
      if (out.back() != '{') out += ',';
      AppendJsonText(out, name);
      out += ':';
      AppendJson(out, member);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (const boost::json::value& element : value.get_array()) {
      if (out.back() != '[') out += ',';
      AppendJson(out, element);
    }
    out += ']';
  } else if (value.is_string()) {
    AppendJsonText(out, value.get_string());
  } else if (value.is_double()) {
    out += fmt::format("{}", value.get_double());
  } else {
    out += boost::json::serialize(value);
  }
}

/// Bytes of `text` that take at most `columns` columns.
size_t BytesWithin(std::string_view text, size_t columns) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (!BeginsCodePoint(text[at])) continue;
    if (columns == 0) break;
    --columns;
  }
  return at;
}

std::string Shortened(const std::string& cell, size_t columns) {
  return WidthOf(cell) <= columns ? cell : cell.substr(0, BytesWithin(cell, columns - 1)) + "…";
}

/// Narrows the widest columns until the last one has some room: one long id must not push the others off the screen.
void Fit(std::vector<size_t>& widths, size_t width) {
  const std::span<size_t> before_last(widths.data(), widths.size() - 1);
  if (before_last.empty()) return;
  size_t taken = std::min(widths.back(), kLastMin);
  for (const size_t one : before_last) taken += one + 2;
  for (; taken > width; --taken) {
    const auto widest = std::ranges::max_element(before_last);
    if (*widest <= kColumnMin) return;
    --*widest;
  }
}

}  // namespace

void Output::Write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) < text.size() && problem_ == 0) problem_ = errno;
}

void Output::Json(const boost::json::value& value) {
  std::string text;
  AppendJson(text, value);
  Write(text + '\n');
}

std::string Output::Paint(Colour colour, std::string_view text) const {
  if (!options_.colours || colour == Colour::kNone) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", std::to_underlying(colour), text);
}

Status Output::Flush() {
  if (std::fflush(file_) != 0 && problem_ == 0) problem_ = errno;
  if (problem_ == 0) return {};
  return Fail(Code::kIo, "cannot write the output: {}", std::strerror(problem_));
}

OutputOptions OptionsOfStdout(bool json) {
  OutputOptions options{.json = json, .terminal = isatty(STDOUT_FILENO) == 1};
  if (!options.terminal) return options;
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  options.colours = (no_color == nullptr || *no_color == '\0') && (term == nullptr || std::string_view(term) != "dumb");
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) options.width = size.ws_col;
  return options;
}

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (std::string& heading : headings_) {
    right_.push_back(heading.starts_with('>'));
    if (right_.back()) heading.erase(0, 1);
  }
}

void Table::Row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

void Table::Print(Output& out, std::string_view if_empty) const {
  if (rows_.empty() && !if_empty.empty()) return out.Write(if_empty);
  std::vector<size_t> widths;
  for (size_t i = 0; i < headings_.size(); ++i) {
    size_t width = WidthOf(headings_[i]);
    for (const auto& row : rows_) width = std::max(width, WidthOf(row[i]));
    widths.push_back(width);
  }
  if (out.width() > 0) Fit(widths, out.width());
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = Shortened(cells[i], widths[i]);
      const std::string padding(widths[i] - WidthOf(cell), ' ');
      if (i > 0) text += "  ";
      text += right_[i] ? padding + cell : cell + padding;
    }
    text.resize(text.find_last_not_of(' ') + 1);
    if (out.width() > 0) text.resize(BytesWithin(text, out.width()));
    return text;
  };
  out.Print("{}\n", out.Paint(Colour::kBold, line(headings_)));
  for (const auto& row : rows_) out.Print("{}\n", line(row));
}

std::string Printable(std::string_view text) {
  const bool utf8 = IsUtf8(text);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const size_t control = utf8 ? ControlAt(text, i) : 0;
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8)) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (control > 0) {
      const unsigned code = CodePointOf(text.substr(i, control));
      out += code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
      i += control - 1;
    } else {
      out += text[i];
    }
  }
  return out;
}

size_t WidthOf(std::string_view text) { return static_cast<size_t>(std::ranges::count_if(text, BeginsCodePoint)); }

std::unexpected<Error> SystemError(std::string_view verb, std::string_view name) {
  return Fail(Code::kIo, "cannot {} {}: {}", verb, name, std::generic_category().message(errno));
}

Result<FilePtr> OpenToRead(const std::string& path) {
  FilePtr file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return SystemError("read", path);
  return file;
}

Result<std::string> ReadAll(const std::string& path) {
  TOCSIN_ASSIGN(const FilePtr file, OpenToRead(path));
  std::string bytes;
  char part[1 << 16];
  while (const size_t size = std::fread(part, 1, sizeof(part), file.get())) bytes.append(part, size);
  if (std::ferror(file.get()) != 0) return SystemError("read", path);
  return bytes;
}

}  // namespace tocsin::cli
