// The tables of verbs, fields and settings as Markdown, for the documents (`make docs`).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::api {

/// One generated table: `calls`; `commands JOB`, `commands TOPIC`, `commands` for the others; `settings`; or
/// `fields OPERATION` with the name of a verb.
Result<std::string> DocTable(std::string_view which);

}  // namespace tocsin::api
