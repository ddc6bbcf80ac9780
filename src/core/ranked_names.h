// RankedNames: a set of names in their order, which counts those that begin with a prefix without a walk: each node of
// the tree knows how many names are below it. One thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>

namespace tocsin {

/// `Name`: std::string, or std::string_view if something else keeps the names.
template <class Name>
class RankedNames : public __gnu_pbds::tree<Name, __gnu_pbds::null_type, std::less<Name>, __gnu_pbds::rb_tree_tag,
                                            __gnu_pbds::tree_order_statistics_node_update> {
 public:
  size_t CountOf(std::string_view prefix) const {
    // No UTF-8 has this byte, so all names with the prefix come before it.
    const std::string end = std::string(prefix) + '\xff';
    return this->order_of_key(Name(end)) - this->order_of_key(Name(prefix));
  }
};

}  // namespace tocsin
