// Secrets: keys and passwords that settings name and never hold. A secret is the file of its name in the folder of
// secrets or, where there is no such file, an environment variable. It is read when it is asked for, so that a file
// may be replaced while the server runs.
//
// Thread-safe. Errors name the secret, where it was looked for, and nothing of what it holds.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin {

class Secrets {
 public:
  /// `folder` empty: the environment alone.
  explicit Secrets(std::string folder) : folder_(std::move(folder)) {}

  /// A newline at the end of the file is not part of it. kInvalidArgument where the name is none or nothing has it.
  Result<std::string> Find(std::string_view name) const;

  /// TOCSIN_SECRET_<name in capitals>, where what is neither a letter nor a digit is an underscore.
  static std::string VariableOf(std::string_view name);

 private:
  const std::string folder_;
};

}  // namespace tocsin
