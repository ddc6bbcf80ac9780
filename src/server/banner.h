// What the server prints when it is ready: where it listens, what it recovered, and a first job to paste.
#pragma once

#include <string>

namespace tocsin {

struct BannerFacts {
  std::string version;  // a line
  std::string store;    // a line: where jobs are, and what was there already
  std::string url;      // without a slash at the end
  std::string resp;     // host:port
  bool virtual_clock = false;
  bool tokens = false;  // every call needs an access token
};

std::string BannerText(const BannerFacts& facts);

}  // namespace tocsin
