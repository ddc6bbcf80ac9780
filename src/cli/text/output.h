// What a command prints: texts and tables for people, or JSON, one object a line, for scripts. Owned by main; one
// thread. Nothing that a server sends reaches a terminal unescaped (Printable).
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>
#include <fmt/format.h>

#include "base/result.h"

namespace tocsin::cli {

enum class Colour : uint8_t { kNone, kBold, kDim, kRed, kGreen, kYellow };

struct OutputOptions {
  bool json = false;      // --json
  bool terminal = false;  // somebody is watching
  bool colours = false;
  size_t width = 0;  // of the terminal; 0: no limit
};

class Output {
 public:
  Output(std::FILE* file, OutputOptions options) : file_(file), options_(options) {}

  bool json() const { return options_.json; }
  bool terminal() const { return options_.terminal; }
  size_t width() const { return options_.width; }

  void Write(std::string_view text);
  template <class... Args>
  void Print(fmt::format_string<Args...> format, Args&&... args) {
    Write(fmt::format(format, std::forward<Args>(args)...));
  }
  /// One line. What could steer a terminal is escaped.
  void Json(const boost::json::value& value);
  /// `text` in a colour where colours are on.
  std::string Paint(Colour colour, std::string_view text) const;
  /// Hands on everything written so far, before a step that relies on it, such as an ack, and at the end. An error
  /// where any of it could not be written.
  Status Flush();

 private:
  std::FILE* file_;
  OutputOptions options_;
  int problem_ = 0;  // errno of the first write that failed
};

/// stdout as the environment has it: colours on a terminal, and not where NO_COLOR is set.
OutputOptions OptionsOfStdout(bool json);

/// Columns that stand under each other. On a terminal wide ones are shortened, and the last one is cut at its width.
class Table {
 public:
  /// A heading that begins with > is aligned to the right: numbers.
  explicit Table(std::vector<std::string> headings);
  void Row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  void Print(Output& out) const;

 private:
  std::vector<std::string> headings_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

/// Control characters, those that turn the direction of a text, and bytes that are no UTF-8 become escapes: what a
/// stranger put into a job must not steer a terminal.
std::string Printable(std::string_view text);

/// How many columns `text` takes, roughly: its code points.
size_t WidthOf(std::string_view text);

}  // namespace tocsin::cli
