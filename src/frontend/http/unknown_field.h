// The error for a name that this call does not know, with the nearest known one: most unknown names are typing errors.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::http {

/// A name that the client gave, for an error: cut short, and never within a character.
std::string Shown(std::string_view name);

std::unexpected<Error> UnknownField(std::string_view name, std::span<const std::string_view> known);

}  // namespace tocsin::http
