// The OpenAPI 3.1 document of the API: openapi.json beside this file, part of the program.
#pragma once

#include <string_view>

namespace tocsin::http {

std::string_view OpenApiDocument();

}  // namespace tocsin::http
