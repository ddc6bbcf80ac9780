// Say: what the program tells people besides its output, on stderr. From any thread; one text is one write.
//
// It never fails: that nobody hears it is no reason to end, and the exit status tells the rest.
#pragma once

#include <cstdio>
#include <string_view>

#include <fmt/format.h>

namespace tocsin::cli {

/// As it is, and at once.
inline void SayText(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

template <class... Args>
void Say(fmt::format_string<Args...> format, Args&&... args) {
  SayText(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tocsin::cli
