// Whether each object of a JSON body names each of its keys once. The parser keeps the last of two without a word, so
// that {"delay_ms":1,"delay_ms":2} would be taken for something that its sender may not have meant. Pure functions.
#pragma once

#include <string_view>

#include <boost/json/value.hpp>

#include "base/result.h"

namespace tocsin::http {

/// `body` is the valid JSON that `root` was parsed from. kInvalidArgument with the path of a key that comes twice, or
/// of an object before it that has more keys than any call takes; without a path if more than 1,000 keys have
/// escapes.
Status CheckKeysAreUnique(std::string_view body, const boost::json::value& root);

}  // namespace tocsin::http
