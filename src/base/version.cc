#include "base/version.h"

namespace tocsin {

std::string_view Version() { return TOCSIN_VERSION; }

}  // namespace tocsin
