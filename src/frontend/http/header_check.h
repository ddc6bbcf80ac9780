// What Beast's parser lets pass in a request header and we do not: everything that two HTTP parsers in a row may
// understand in two ways; and what a browser sends for a page of another site.
#pragma once

#include <string_view>

#include "base/result.h"

namespace tocsin::http {

/// `header` is the request line and the fields, each with its CRLF, without the empty line.
Status CheckHeader(std::string_view header);

}  // namespace tocsin::http
