#include "server/password_file.h"

#include <utility>

#include "auth/private_file.h"

namespace tocsin {

Result<std::string> PasswordOf(std::string_view key, const std::string& path) {
  if (path.empty()) return std::string();
  auto text = auth::ReadPrivate(path);
  if (!text) return std::unexpected(std::move(text).error().Prefixed(key));
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  if (text->empty() || text->contains('\n')) {
    return FailField(Code::kInvalidArgument, std::string(key), "{}: {} holds {} line: it takes one", key, path,
                     text->empty() ? "no" : "more than one");
  }
  return text;
}

}  // namespace tocsin
