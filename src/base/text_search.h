// TextSearch: looks for one part in many texts. It takes linear time whatever the part and the texts are: people choose
// both, and string_view::contains takes 20 ms for a megabyte of the wrong ones. A value that points to the part.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tocsin {

class TextSearch {
 public:
  /// The part has to outlive this. An empty one is in every text.
  explicit TextSearch(std::string_view part);

  bool IsIn(std::string_view text);
  size_t size() const { return part_.size(); }

 private:
  bool IsInLinear(std::string_view text);

  std::string_view part_;
  std::array<uint32_t, 256> skips_{};  // Horspool: how far to go on if this byte is under the last one of the part
  std::vector<uint32_t> borders_;      // Knuth-Morris-Pratt; made when it is first needed
};

}  // namespace tocsin
