// Messages to the user on stderr, apart from the output. From any thread; one text is one write.
//
// Writing never fails: if nobody can read a message, the exit status still tells what happened.
#pragma once

#include <cstdio>
#include <string_view>

#include <fmt/format.h>

namespace tocsin::cli {

inline void WriteStderr(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

template <class... Args>
void PrintStderr(fmt::format_string<Args...> format, Args&&... args) {
  WriteStderr(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tocsin::cli
