#include "frontend/http/header_check.h"

#include <algorithm>
#include <optional>

namespace tocsin::http {
namespace {

bool SameIgnoringCase(std::string_view a, std::string_view lower) {
  return std::ranges::equal(a, lower, [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x + 32 : x) == y; });
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// Whether a page that the browser got from `origin` ("http://host:port", or "null") came from this `host`.
bool IsFrom(std::string_view origin, std::string_view host) {
  const size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos || host.empty()) return false;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(origin.substr(scheme + 3), host, {}, lower, lower);
}

/// Only plain digits: no sign, no list.
bool IsLength(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Status CheckHeader(std::string_view header) {
  int hosts = 0;
  int lengths = 0;
  int encodings = 0;
  std::string_view host;
  std::optional<std::string_view> origin;
  bool http_1_1 = false;
  for (bool first = true; !header.empty(); first = false) {
    const size_t end = header.find('\n');
    if (end == std::string_view::npos || end == 0 || header[end - 1] != '\r') {
      return Fail(Code::kInvalidArgument, "a line of the request header does not end in CR LF");
    }
    const std::string_view line = header.substr(0, end - 1);
    header.remove_prefix(end + 1);
    if (first) {
      http_1_1 = line.ends_with("HTTP/1.1");
      continue;
    }
    if (line.starts_with(' ') || line.starts_with('\t')) {
      return Fail(Code::kInvalidArgument, "the request has a folded header line");
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos)
      return Fail(Code::kInvalidArgument, "a line of the request header has no colon");
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = Trimmed(line.substr(colon + 1));
    if (SameIgnoringCase(name, "host")) {
      ++hosts;
      host = value;
    }
    if (SameIgnoringCase(name, "origin")) {
      if (origin) return FailField(Code::kInvalidArgument, "origin", "the request has Origin twice");
      origin = value;
    }
    if (SameIgnoringCase(name, "expect") && !SameIgnoringCase(value, "100-continue")) {
      return Fail(Code::kInvalidArgument, "the only Expect that is understood is 100-continue");
    }
    if (SameIgnoringCase(name, "content-length")) {
      ++lengths;
      if (!IsLength(value)) return Fail(Code::kInvalidArgument, "Content-Length is not a number");
    }
    if (SameIgnoringCase(name, "transfer-encoding")) {
      ++encodings;
      if (!SameIgnoringCase(value, "chunked")) {
        return Fail(Code::kInvalidArgument, "the only Transfer-Encoding that is understood is chunked");
      }
    }
  }
  if (lengths > 1 || encodings > 1 || hosts > 1) {
    return Fail(Code::kInvalidArgument, "the request has {} twice",
                lengths > 1 ? "Content-Length" : (encodings > 1 ? "Transfer-Encoding" : "Host"));
  }
  if (lengths + encodings > 1) {
    return Fail(Code::kInvalidArgument, "the request has both Content-Length and Transfer-Encoding");
  }
  if (!http_1_1 && encodings > 0) {
    return Fail(Code::kInvalidArgument, "Transfer-Encoding needs HTTP/1.1");
  }
  // A page of any site can make its reader's browser send requests to this machine.
  if (origin && !IsFrom(*origin, host)) {
    return FailField(Code::kInvalidArgument, "origin",
                     "the request comes from a web page of another site than its Host");
  }
  if (http_1_1 && hosts == 0) return Fail(Code::kInvalidArgument, "the request has no Host");
  return {};
}

}  // namespace tocsin::http
