#include "frontend/http/header_check.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace tocsin::http {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool SameText(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, Lower, Lower); }

/// Whether a page that the browser got from `origin` ("http://host:port", or "null") came from this `host`.
bool IsFrom(std::string_view origin, std::string_view host) {
  const size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && !host.empty() && SameText(origin.substr(scheme + 3), host);
}

/// Digits only: no sign, no list.
bool IsLength(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether a Host is localhost or an IP address: no other site can own such a name.
bool IsOfThisMachine(std::string_view host) {
  if (host.starts_with('[')) return true;
  const std::string_view name = host.substr(0, host.find(':'));
  if (SameIgnoringCase(name, "localhost")) return true;
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view last = name.substr(dot + 1);
  return SameIgnoringCase(last, "localhost") || IsLength(last);  // no top-level domain is a number
}

/// "http" in "http://host/path"; empty in any other form.
std::string_view SchemeOf(std::string_view target) {
  const size_t end = target.find("://");
  if (end == std::string_view::npos) return {};
  const std::string_view scheme = target.substr(0, end);
  return SameIgnoringCase(scheme, "http") || SameIgnoringCase(scheme, "https") ? scheme : std::string_view();
}

/// "host:port" in "http://host:port/path"; nothing in any other form.
std::optional<std::string_view> AuthorityOf(std::string_view target) {
  const std::string_view scheme = SchemeOf(target);
  if (scheme.empty()) return std::nullopt;
  target.remove_prefix(scheme.size() + 3);
  return target.substr(0, target.find_first_of("/?#"));
}

/// "/path" in "GET /path HTTP/1.1".
std::string_view TargetOf(std::string_view request_line) {
  const size_t space = request_line.find(' ');
  if (space == std::string_view::npos) return {};
  request_line.remove_prefix(space + 1);
  return request_line.substr(0, request_line.find(' '));
}

/// Collects what the header lines say.
struct Fields {
  int hosts = 0;
  int lengths = 0;
  int encodings = 0;
  int authorizations = 0;
  std::string_view host;
  std::optional<std::string_view> origin;
  bool browser = false;
  bool other_site = false;  // as the browser says
  bool navigates = false;   // the same: the answer is for a window, and the page does not see it
  bool embedded = false;    // the same: the window is a part of the page, such as a frame

  Status Take(std::string_view name, std::string_view value);
};

Status Fields::Take(std::string_view name, std::string_view value) {
  const auto is = [name](std::string_view lower) { return SameIgnoringCase(name, lower); };
  if (is("host")) {
    ++hosts;
    host = value;
  } else if (is("authorization")) {
    ++authorizations;
  } else if (is("content-length")) {
    ++lengths;
    if (!IsLength(value)) return Fail(Code::kInvalidArgument, "Content-Length is not a number");
  } else if (is("transfer-encoding")) {
    ++encodings;
    if (!SameIgnoringCase(value, "chunked")) {
      return Fail(Code::kInvalidArgument, "the only Transfer-Encoding that is understood is chunked");
    }
  } else if (is("origin")) {
    if (origin) return FailField(Code::kInvalidArgument, "origin", "the request has Origin twice");
    origin = value;
    browser = true;
  } else if (is("expect") && !SameIgnoringCase(value, "100-continue")) {
    return Fail(Code::kInvalidArgument, "the only Expect that is understood is 100-continue");
  } else if (is("content-encoding") && !SameIgnoringCase(value, "identity")) {
    return FailField(Code::kInvalidArgument, "content-encoding",
                     "the body is compressed ({}): send it as it is, without Content-Encoding", Shown(value));
  } else if (is("sec-fetch-mode")) {
    navigates = value == "navigate";
  } else if (is("sec-fetch-dest")) {
    embedded = value != "document";
  } else if (is("accept-language") || is("sec-fetch-site") || (is("user-agent") && value.starts_with("Mozilla/"))) {
    // For a GET to the host of a plain http page, a browser sends neither Origin nor Sec-Fetch-Site. It always sends
    // Accept-Language, which a page can change but not remove.
    browser = true;
    if (is("sec-fetch-site") && value != "same-origin" && value != "none") other_site = true;
  }
  return {};
}

Status CheckTogether(const Fields& fields, bool http_1_1) {
  const std::pair<const char*, int> once[] = {{"Content-Length", fields.lengths},
                                              {"Transfer-Encoding", fields.encodings},
                                              {"Host", fields.hosts},
                                              {"Authorization", fields.authorizations}};
  for (const auto& [name, count] : once) {
    if (count > 1) return Fail(Code::kInvalidArgument, "the request has {} twice", name);
  }
  if (fields.lengths + fields.encodings > 1) {
    return Fail(Code::kInvalidArgument, "the request has both Content-Length and Transfer-Encoding");
  }
  if (!http_1_1 && fields.encodings > 0) return Fail(Code::kInvalidArgument, "Transfer-Encoding needs HTTP/1.1");
  if (http_1_1 && fields.hosts == 0) return Fail(Code::kInvalidArgument, "the request has no Host");
  return {};
}

bool IsAmong(std::span<const std::string> hosts, std::string_view host) {
  const std::string_view name = host.substr(0, host.find(':'));
  return std::ranges::any_of(hosts, [name](const std::string& each) { return SameIgnoringCase(name, each); });
}

/// Whether the target is of the API: each call makes the server work, and a stream holds one of few places. The files
/// of the dashboard, and whether the server is well, are for everybody.
bool IsOfApi(std::string_view target) {
  const std::string_view path = PathOf(target);
  return path.starts_with("/v1") || path.starts_with("/metrics");
}

/// A page of any site can make a browser send requests to this machine. `follows`: the request may be a link from
/// another site that somebody follows.
Status CheckPage(const Fields& fields, bool follows, Pages pages, std::span<const std::string> hosts) {
  if ((fields.origin && !IsFrom(*fields.origin, fields.host)) || (fields.other_site && !follows)) {
    return FailField(Code::kForbidden, "origin", "the request comes from a web page of another site than its Host");
  }
  // A site can also make its own name resolve to 127.0.0.1 after its page is loaded: to the browser, page and server
  // are one site then. Only the name shows it. Other clients may use any name, for example behind a proxy.
  const bool limited = pages == Pages::kOfThisMachine || !hosts.empty();
  if (limited && fields.browser && !IsOfThisMachine(fields.host) && !IsAmong(hosts, fields.host)) {
    return FailField(Code::kForbidden, "host",
                     "a browser asks for '{}': this server answers browsers only as localhost, by IP address, or under "
                     "a name of http.allowed_hosts",
                     Shown(fields.host));
  }
  return {};
}

}  // namespace

bool SameIgnoringCase(std::string_view a, std::string_view lower) { return std::ranges::equal(a, lower, {}, Lower); }

bool HasBareLf(std::string_view header, size_t from) {
  for (size_t at = header.find('\n', from); at != std::string_view::npos; at = header.find('\n', at + 1)) {
    if (at == 0 || header[at - 1] != '\r') return true;
  }
  return false;
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::string_view PathOf(std::string_view target) {
  const auto authority = AuthorityOf(target);
  if (!authority) return target;
  const std::string_view path(authority->data() + authority->size(), target.data() + target.size());
  return path.empty() ? "/" : path;
}

Status CheckHeader(std::string_view header, Pages pages, std::span<const std::string> hosts) {
  Fields fields;
  std::string_view request_line;
  for (bool first = true; !header.empty(); first = false) {
    const size_t end = header.find('\n');
    if (end == std::string_view::npos || end == 0 || header[end - 1] != '\r') {
      return Fail(Code::kInvalidArgument, kNoCrLf);
    }
    const std::string_view line = header.substr(0, end - 1);
    header.remove_prefix(end + 1);
    if (first) {
      request_line = line;
      continue;
    }
    if (line.starts_with(' ') || line.starts_with('\t')) {
      return Fail(Code::kInvalidArgument, "the request has a folded header line");
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      return Fail(Code::kInvalidArgument, "a line of the request header has no colon");
    }
    TOCSIN_TRY(fields.Take(line.substr(0, colon), Trimmed(line.substr(colon + 1))));
  }
  TOCSIN_TRY(CheckTogether(fields, request_line.ends_with("HTTP/1.1")));
  if (const auto authority = AuthorityOf(TargetOf(request_line)); authority && !SameText(*authority, fields.host)) {
    return FailField(Code::kInvalidArgument, "host", "the request's target and its Host name different hosts");
  }
  const bool reads_only = request_line.starts_with("GET ") || request_line.starts_with("HEAD ");
  const bool link = fields.navigates && !fields.embedded;
  const bool follows = reads_only && (link || !IsOfApi(TargetOf(request_line)));
  return CheckPage(fields, follows, pages, hosts);
}

}  // namespace tocsin::http
