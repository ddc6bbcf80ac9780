// Checks of a request header that Beast's parser does not make: refuses what two HTTP parsers in a row may understand
// in two ways, and what a browser sends for a page of another site. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::http {

/// Which web pages may make a browser call this server.
enum class Pages {
  kOfTheirHost,    // a request's Origin must be its Host
  kOfThisMachine,  // and the Host must name this machine: for a server without other protection
};

/// `header` is the request line and the fields, each with its CRLF, without the empty line. `hosts`: names in small
/// letters under which browsers may call, besides those of this machine. If there are any, they count for all Pages.
/// kForbidden if a page caused the request that may not.
Status CheckHeader(std::string_view header, Pages pages, std::span<const std::string> hosts = {});

/// Says that a line ends in LF alone.
inline constexpr std::string_view kNoCrLf = "a line of the request header does not end in CR LF";
/// Whether that is so for an LF at `from` or later.
bool HasBareLf(std::string_view header, size_t from);

/// The path and query of a target, also of the form for proxies ("http://host/path").
std::string_view PathOf(std::string_view target);

bool SameIgnoringCase(std::string_view a, std::string_view lower);
/// Without the blanks and tabs around it.
std::string_view Trimmed(std::string_view text);

}  // namespace tocsin::http
