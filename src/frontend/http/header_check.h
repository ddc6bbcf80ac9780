// What Beast's parser lets pass in a request header and we do not: everything that two HTTP parsers in a row may
// understand in two ways; and what a browser sends for a page of another site. Pure functions.
#pragma once

#include <string_view>

#include "base/result.h"

namespace tocsin::http {

/// Who is kept out because browsers obey the pages that they show.
enum class Pages {
  kOfTheirHost,    // a request's Origin must be its Host
  kOfThisMachine,  // and the Host a name that only this machine answers to: for a server without other protection
};

/// `header` is the request line and the fields, each with its CRLF, without the empty line.
Status CheckHeader(std::string_view header, Pages pages);

/// The path and query of a target; of the form that is meant for proxies ("http://host/path") without its beginning.
std::string_view PathOf(std::string_view target);

bool SameIgnoringCase(std::string_view a, std::string_view lower);
/// Without blanks and tabs around it.
std::string_view Trimmed(std::string_view text);

}  // namespace tocsin::http
