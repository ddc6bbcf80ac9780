// The output of a command: texts and tables for people, or JSON, one object a line, for scripts. Owned by main; one
// thread. Nothing that a server sends reaches a terminal unescaped (Printable). Also the files that commands read.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>
#include <fmt/format.h>

#include "base/result.h"

namespace tocsin::cli {

/// The values are the codes of terminals.
enum class Colour : uint8_t { kNone, kBold, kDim, kRed = 31, kGreen, kYellow };

struct OutputOptions {
  bool json = false;      // --json
  bool terminal = false;  // stdout is a terminal
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
  /// One line. Characters that a terminal could obey are escaped.
  void Json(const boost::json::value& value);
  /// `text` in a colour, if colours are on.
  std::string Paint(Colour colour, std::string_view text) const;
  /// Flushes everything written so far: at the end, and before a step that relies on it, such as an ack. An error if
  /// any of it could not be written.
  Status Flush();

 private:
  std::FILE* file_;
  OutputOptions options_;
  int problem_ = 0;  // errno of the first write that failed
};

/// For stdout: colours on a terminal, unless NO_COLOR is set.
OutputOptions OptionsOfStdout(bool json);

/// Aligned columns. On a terminal wide columns are shortened, and lines are cut at its width.
class Table {
 public:
  /// A heading that begins with > is aligned to the right: numbers.
  explicit Table(std::vector<std::string> headings);
  void Row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// `if_empty` instead, if there are no rows; without it, only the headings.
  void Print(Output& out, std::string_view if_empty = "") const;

 private:
  std::vector<std::string> headings_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

/// Escapes control characters, characters that change the direction of text, and bytes that are not UTF-8: the content
/// of a job must not control the user's terminal.
std::string Printable(std::string_view text);

/// How many columns `text` takes, roughly: its code points.
size_t WidthOf(std::string_view text);

/// A message to the user, apart from the output. From any thread; one text is one write. Writing never fails: if nobody
/// can read a message, the exit status still tells what happened.
inline void WriteStderr(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

template <class... Args>
void PrintStderr(fmt::format_string<Args...> format, Args&&... args) {
  WriteStderr(fmt::format(format, std::forward<Args>(args)...));
}

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin && file != stdout) std::fclose(file);
  }
};
using FilePtr = std::unique_ptr<std::FILE, CloseFile>;

/// kIo: "cannot VERB NAME: " and what errno means.
std::unexpected<Error> SystemError(std::string_view verb, std::string_view name);

/// The path "-" is stdin.
Result<FilePtr> OpenToRead(const std::string& path);
Result<std::string> ReadAll(const std::string& path);

}  // namespace tocsin::cli
