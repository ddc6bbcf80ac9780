// Secrets: keys and passwords. Settings name them and never hold them. A secret is the file of its name in the folder
// of secrets or, if there is no such file, an environment variable. Every call reads it again, so an operator can
// replace the file while the server runs.
//
// Thread-safe. Errors name the secret and where we looked for it, never its value. A file that other users can reach is
// used, because containers mount secrets like that, and the log says so once.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin {

class Secrets {
 public:
  /// `folder` empty: only the environment.
  explicit Secrets(std::string folder) : folder_(std::move(folder)) {}

  /// A newline at the end of the file is not part of it. kInvalidArgument if the name is invalid or unknown.
  Result<std::string> Find(std::string_view name) const;

  /// TOCSIN_SECRET_<name in capitals>, with an underscore for everything that is neither a letter nor a digit.
  static std::string VariableOf(std::string_view name);

 private:
  struct Told {
    std::mutex mutex;  // guards paths
    std::set<std::string> paths;
  };

  Result<std::optional<std::string>> ReadFile(const std::string& path) const;
  void WarnOnce(const std::string& path, unsigned mode) const;

  const std::string folder_;
  const std::shared_ptr<Told> told_ = std::make_shared<Told>();  // shared by copies
};

}  // namespace tocsin
