// The error for a name that this call does not know, with the nearest known one: most unknown names are typing errors.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "base/text.h"

namespace tocsin::http {

std::unexpected<Error> UnknownField(std::string_view name, std::span<const std::string_view> known);

}  // namespace tocsin::http
