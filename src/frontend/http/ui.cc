#include "frontend/http/ui.h"

#include <algorithm>

#include "frontend/http/encode.h"
#include "frontend/http/session.h"

namespace tocsin::http {
namespace {

namespace beast = boost::beast;

constexpr std::string_view kRoot = "/ui";
constexpr std::string_view kIndex = "index.html";

Response NoUiFile(std::string_view path) {
  const bool built = !UiFiles().empty();
  return ErrorResponse({Code::kNotFound,
                        built ? fmt::format("the dashboard has no file '{}'", Shown(path))
                              : "this server was built without the dashboard (TOCSIN_UI=OFF)",
                        {}});
}

void ShowUi(Call& call) {
  const UiFile* const file = FindUiFile(UiFiles(), call.params[0]);
  Response response = file == nullptr ? NoUiFile(call.params[0]) : Response{.content_type = file->content_type};
  response.fields = kUiFields;
  if (file != nullptr) {
    response.fields +=
        file->immutable ? "Cache-Control: public, max-age=31536000, immutable\r\n" : "Cache-Control: no-cache\r\n";
    fmt::format_to(std::back_inserter(response.fields), "ETag: {}\r\n", file->etag);
    if (NamesEtag(call.session.FieldOf(beast::http::field::if_none_match), file->etag)) {
      response.status = 304;
    } else {
      response.gzipped = call.session.TakesGzip();
      response.body = response.gzipped ? file->gzip : file->plain;
    }
  }
  call.answer.Send(std::move(response));
}

}  // namespace

bool IsUiPath(std::string_view path) {
  return path.starts_with(kRoot) && (path.size() == kRoot.size() || path[kRoot.size()] == '/');
}

bool TakesHtml(std::string_view accept) { return accept.contains("text/html"); }

const UiFile* FindUiFile(std::span<const UiFile> files, std::string_view path) {
  const auto found = std::ranges::find(files, path.empty() ? kIndex : path, &UiFile::name);
  return found == files.end() ? nullptr : &*found;
}

bool NamesEtag(std::string_view if_none_match, std::string_view etag) {
  return if_none_match == "*" || if_none_match.contains(etag);
}

Response RedirectToUi() {
  Response response{.status = 302, .content_type = "text/plain"};
  // Relative, so that it leads there also behind a proxy that puts a path before /.
  response.fields = fmt::format("Location: {}/\r\nVary: Accept\r\n{}", kRoot.substr(1), kUiFields);
  return response;
}

std::vector<Route> UiRoutes() {
  return {
      {.method = Verb::get,
       .pattern = "/ui",
       .access = Access::kOpen,
       .handler = [](Call& call) { call.answer.Send(RedirectToUi()); },
       .any_query = true},
      {.method = Verb::get, .pattern = "/ui/{path*}", .access = Access::kOpen, .handler = ShowUi, .any_query = true}};
}

}  // namespace tocsin::http
