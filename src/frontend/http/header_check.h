// Checks of a request header that Beast's parser does not make: refuses what two HTTP parsers in a row may understand
// in two ways, and what a browser sends for a page of another site. Pure functions.
#pragma once

#include <string_view>

#include "base/result.h"

namespace tocsin::http {

/// Which web pages may make a browser call this server.
enum class Pages {
  kOfTheirHost,    // a request's Origin must be its Host
  kOfThisMachine,  // and the Host must name this machine: for a server without other protection
};

/// `header` is the request line and the fields, each with its CRLF, without the empty line.
Status CheckHeader(std::string_view header, Pages pages);

/// The path and query of a target, also of the form for proxies ("http://host/path").
std::string_view PathOf(std::string_view target);

bool SameIgnoringCase(std::string_view a, std::string_view lower);
/// Without the blanks and tabs around it.
std::string_view Trimmed(std::string_view text);

}  // namespace tocsin::http
