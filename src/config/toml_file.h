// The configuration file: from TOML to a flat list of settings. The only place that uses the TOML library.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "config/options.h"

namespace tocsin {

/// A value that was given for an option, and who gave it ("tocsin.toml:12", "--shards", "TOCSIN_SHARDS").
struct Setting {
  const Option* option = nullptr;
  std::string value;
  std::string origin;
};

/// The settings in `text`. `name` is the file's, for messages. An error names the file and the line.
Result<std::vector<Setting>> ParseToml(const std::string& text, const std::string& name);

}  // namespace tocsin
