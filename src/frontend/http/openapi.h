// The OpenAPI 3.1 document of the API: paths, bodies and most schemas come from the tables of verbs, settings, figures
// and a job's members; what those do not say is in openapi.json beside this file.
#pragma once

#include <string>
#include <string_view>

namespace tocsin::http {

const std::string& OpenApiDocument();
/// openapi.json, made a part of the program by CMake.
std::string_view OpenApiBase();

}  // namespace tocsin::http
