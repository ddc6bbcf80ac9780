#include "cli/transfer/checkpoint.h"

#include <cerrno>
#include <cstdio>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <unistd.h>

#include "cli/text/file.h"

namespace tocsin::cli {
Result<std::optional<boost::json::object>> Checkpoint::Load() const {
  if (::access(path_.c_str(), F_OK) != 0) return std::nullopt;
  const auto text = ReadAll(path_);
  if (!text) return std::unexpected(text.error());
  boost::system::error_code problem;
  boost::json::value value = boost::json::parse(*text, problem);
  if (problem || !value.is_object()) return Fail(Code::kCorrupt, "{} cannot be understood; remove it", path_);
  return std::move(value.as_object());
}

Status Checkpoint::Save(const boost::json::object& state) const {
  const std::string fresh = path_ + ".new";
  FilePtr file(std::fopen(fresh.c_str(), "wb"));
  if (file == nullptr) return SystemError("write", fresh);
  const std::string text = boost::json::serialize(state) + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  const bool closed = std::fclose(file.release()) == 0;
  if (!written || !closed) return SystemError("write", fresh);
  if (std::rename(fresh.c_str(), path_.c_str()) != 0) return SystemError("write", path_);
  return {};
}

Status Checkpoint::Remove() const {
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) return SystemError("remove", path_);
  return {};
}

}  // namespace tocsin::cli
