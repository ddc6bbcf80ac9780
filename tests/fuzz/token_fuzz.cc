// Any file of tokens either gives records that survive being written and read again, or an error with a message; and no
// text but a whole token is taken for one.
#include <string>

#include "auth/token_set.h"
#include "base/result.h"

using namespace tocsin::auth;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto parts = SplitToken(text)) {
    TOCSIN_CHECK(parts->id.size() + parts->secret.size() + 8 == text.size());
  }
  auto records = ParseTokens(text);
  if (!records) {
    TOCSIN_CHECK(!records.error().message.empty());
    return 0;
  }
  const std::string written = TokensText(*records);
  const auto again = ParseTokens(written);
  TOCSIN_CHECK(again.has_value() && again->size() == records->size());
  TOCSIN_CHECK(TokensText(*again) == written);
  TOCSIN_CHECK(TokenSet(*std::move(records)).Find(text) == nullptr);
  return 0;
}
