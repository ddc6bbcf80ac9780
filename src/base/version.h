// The version of Tocsin. CMakeLists.txt states it; everything else that shows it asks here.
#pragma once

#include <string_view>

namespace tocsin {

/// Such as "0.1.0".
std::string_view Version();

}  // namespace tocsin
