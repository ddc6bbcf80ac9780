// Finds the known name that is nearest to an unknown one, for messages such as: unknown key "http.listn"; did you mean
// "http.listen"?
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace tocsin {

/// How many characters must be inserted, removed or replaced to turn one into the other.
inline size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // distances of the prefix of `a` so far to every prefix of `b`
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

/// `; did you mean "x"?` for the nearest name, or nothing if none is near. `names` is a range of strings.
template <class Names>
std::string DidYouMean(std::string_view unknown, const Names& names) {
  constexpr size_t kLongest = 64;  // a longer name is no typing error, and the search takes quadratic time
  if (unknown.size() > kLongest) return "";
  std::string_view nearest;
  size_t least = unknown.size() / 2 + 1;
  for (const std::string_view name : names) {
    const size_t distance = EditDistance(unknown, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest.empty() ? "" : "; did you mean \"" + std::string(nearest) + "\"?";
}

}  // namespace tocsin
