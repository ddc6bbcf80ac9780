// Checkpoint: how far a long transfer is, in a small file beside the data (FILE.progress), so that a run that was
// interrupted can continue. Replaced in one step: a reader sees the old or the new state. One thread.
#pragma once

#include <optional>
#include <string>

#include <boost/json/object.hpp>

#include "base/result.h"

namespace tocsin::cli {

class Checkpoint {
 public:
  /// Beside `file`.
  explicit Checkpoint(const std::string& file) : path_(file + ".progress") {}

  const std::string& path() const { return path_; }
  /// Nothing if there is none. kCorrupt if it cannot be parsed.
  Result<std::optional<boost::json::object>> Load() const;
  Status Save(const boost::json::object& state) const;
  /// The transfer is over.
  Status Remove() const;

 private:
  const std::string path_;
};

}  // namespace tocsin::cli
