// How a member is written down where the others read it: lines of `name=value`, which people can read too. The id is
// not in it: it is the name of the record. A reader skips lines that it does not know, so a version may add some; a
// member whose record says nothing is a member all the same, since every node has to compute the same assignment.
#pragma once

#include <string>
#include <string_view>

#include "spi/coordinator.h"

namespace tocsin {

std::string EncodeMember(const Member& member);
Member DecodeMember(std::string id, std::string_view record);

}  // namespace tocsin
