// The dashboard: files that the build of web/ makes and that are a part of the program (ui_files.cc, which
// tools/embed_ui.mjs generates; without TOCSIN_UI there are none). GET /ui/NAME answers a file, and /ui/ the page,
// whose own paths are behind a #. No state.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/http/router.h"

namespace tocsin::http {

struct UiFile {
  std::string_view name;  // below /ui/
  std::string_view content_type;
  std::string_view etag;  // with its quotes
  bool immutable;         // its name has a hash of its content
  std::string_view plain;
  std::string_view gzip;
};
/// By name.
std::span<const UiFile> UiFiles();

/// Further header lines of every answer below /ui: a page may load nothing from elsewhere, and nobody may frame it.
inline constexpr std::string_view kUiFields =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'\r\n"
    "X-Frame-Options: DENY\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n";

bool IsUiPath(std::string_view path);
/// Whether a client that accepts this shows pages to people.
bool TakesHtml(std::string_view accept);
/// The file for `path`, which is what comes after /ui/; index.html if it is empty. Null if there is none.
const UiFile* FindUiFile(std::span<const UiFile> files, std::string_view path);
/// Whether the value of If-None-Match names the ETag.
bool NamesEtag(std::string_view if_none_match, std::string_view etag);

struct Response;
Response RedirectToUi();
/// The routes of the dashboard.
std::vector<Route> UiRoutes();

}  // namespace tocsin::http
