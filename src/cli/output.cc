#include "cli/output.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <boost/json/serialize.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

namespace tocsin::cli {
namespace {

std::string_view CodeOf(Colour colour) {
  switch (colour) {
    case Colour::kNone:
      break;
    case Colour::kBold:
      return "1";
    case Colour::kDim:
      return "2";
    case Colour::kRed:
      return "31";
    case Colour::kGreen:
      return "32";
    case Colour::kYellow:
      return "33";
  }
  return "";
}

bool BeginsCodePoint(char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }

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

}  // namespace

void Output::Write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) < text.size() && problem_ == 0) problem_ = errno;
}

void Output::Json(const boost::json::value& value) {
  Write(boost::json::serialize(value));
  Write("\n");
}

std::string Output::Paint(Colour colour, std::string_view text) const {
  if (!options_.colours || colour == Colour::kNone) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", CodeOf(colour), text);
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

void Table::Print(Output& out) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < headings_.size(); ++i) {
    size_t width = WidthOf(headings_[i]);
    for (const auto& row : rows_) width = std::max(width, WidthOf(row[i]));
    widths.push_back(width);
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - WidthOf(cells[i]), ' ');
      if (i > 0) text += "  ";
      text += right_[i] ? padding + cells[i] : cells[i] + padding;
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
    const bool c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<uint8_t>(text[i + 1]) < 0xA0;
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8)) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (c1) {  // a control character of ISO 8859, which some terminals obey
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[++i]));
    } else {
      out += text[i];
    }
  }
  return out;
}

size_t WidthOf(std::string_view text) { return static_cast<size_t>(std::ranges::count_if(text, BeginsCodePoint)); }

}  // namespace tocsin::cli
