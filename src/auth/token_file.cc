#include "auth/token_file.h"

#include <algorithm>
#include <span>
#include <unordered_set>

#include <fmt/chrono.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "auth/private_file.h"
#include "base/comma_list.h"
#include "base/text.h"

namespace tocsin::auth {
namespace {

constexpr std::string_view kMark = "tocsin_";
constexpr std::string_view kBase32 = "abcdefghijklmnopqrstuvwxyz234567";
constexpr std::string_view kHex = "0123456789abcdef";
constexpr size_t kTokenIdSize = 8;
constexpr size_t kIdBytes = kTokenIdSize * 5 / 8;
constexpr size_t kSecretBytes = 32;
constexpr size_t kSecretSize = (kSecretBytes * 8 + 4) / 5;

void AppendBase32(std::string& out, std::span<const uint8_t> bytes) {
  uint32_t pending = 0;
  int bits = 0;
  for (const uint8_t byte : bytes) {
    pending = pending << 8 | byte;
    for (bits += 8; bits >= 5; bits -= 5) out += kBase32[pending >> (bits - 5) & 31];
  }
  if (bits > 0) out += kBase32[pending << (5 - bits) & 31];
}

bool IsBase32(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return kBase32.contains(c); });
}

bool IsTokenId(std::string_view text) { return text.size() == kTokenIdSize && IsBase32(text); }

constexpr std::string_view kFormat = "tocsin-tokens 1";
constexpr std::string_view kFormatWithCertificates = "tocsin-tokens 2";
constexpr std::string_view kCertificate = "certificate ";  // before its subject, in place of a digest
constexpr std::string_view kComment =
    "# Access tokens of Tocsin, without their secrets. Changed by: tocsin token create, tocsin token revoke.";
constexpr size_t kNameMax = 256;
constexpr size_t kSubjectMax = 1024;

/// The same limits as for names of topics.
Status CheckText(std::string_view field, std::string_view text) {
  if (text.size() > kNameMax) {
    return FailField(Code::kInvalidArgument, std::string(field), "the {} has {} bytes; at most {} are allowed", field,
                     text.size(), kNameMax);
  }
  const bool clean = std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7F; });
  if (!clean) {
    return FailField(Code::kInvalidArgument, std::string(field), "the {} has a control character", field);
  }
  return {};
}

Status ValidateGrant(const Grant& grant) {
  if (grant.name.empty()) return FailField(Code::kInvalidArgument, "name", "the name is empty");
  if (grant.scopes.empty()) {
    return FailField(Code::kInvalidArgument, "scope", "the access token has no scope: submit, consume or admin");
  }
  TOCSIN_TRY(CheckText("name", grant.name));
  return CheckText("topic prefix", grant.prefix);
}

Result<ScopeSet> ParseScopes(std::string_view text) {
  ScopeSet scopes;
  for (const std::string_view name : CommaList(text)) {
    const auto scope = ParseScope(name);
    if (!scope) return Fail(Code::kInvalidArgument, "unknown scope \"{}\"{}", name, DidYouMean(name, kScopeNames));
    scopes.Add(*scope);
  }
  return scopes;
}

Status CheckSubject(std::string_view subject) {
  const bool clean = std::ranges::none_of(subject, [](unsigned char c) { return c < ' ' || c == 0x7F; });
  // openssl's own default, subject=CN = worker, would never match.
  const std::string_view first_name = subject.substr(0, subject.find('='));
  const bool named = first_name.size() < subject.size() && first_name != "subject" && !first_name.contains(' ');
  if (!clean || !named || subject.size() > kSubjectMax) {
    return FailField(Code::kInvalidArgument, "certificate",
                     "\"{}\" is not the subject of a certificate, as CN=worker,O=Acme, of up to {} bytes; it is what "
                     "`openssl x509 -noout -subject -nameopt RFC2253,-esc_msb` prints after subject=",
                     Shown(subject), kSubjectMax);
  }
  return {};
}

Result<TokenRecord> ParseLine(std::string_view line, bool certificates) {
  constexpr size_t kFields = 6;
  std::array<std::string_view, kFields> fields;
  for (size_t i = 0; i < kFields; ++i) {
    const size_t tab = line.find('\t');
    if ((tab == std::string_view::npos) != (i + 1 == kFields)) {
      return Fail(Code::kInvalidArgument, "an access token has {} fields, with one tab between them", kFields);
    }
    fields[i] = line.substr(0, tab);
    line.remove_prefix(i + 1 == kFields ? line.size() : tab + 1);
  }
  const auto [id, scopes, topics, created, digest, name] = fields;
  if (!IsTokenId(id)) return Fail(Code::kInvalidArgument, "\"{}\" is not the id of an access token", id);
  TOCSIN_ASSIGN(const ScopeSet parsed_scopes, ParseScopes(scopes));
  if (!topics.ends_with('*')) return Fail(Code::kInvalidArgument, "the topics do not end with *");
  TokenRecord record{.id = std::string(id), .created = std::string(created)};
  if (certificates && digest.starts_with(kCertificate)) {
    record.certificate = digest.substr(kCertificate.size());
    TOCSIN_TRY(CheckSubject(record.certificate));
  } else {
    const auto parsed_digest = ParseDigest(digest);
    if (!parsed_digest) return Fail(Code::kInvalidArgument, "the digest is not 64 hexadecimal digits");
    record.digest = *parsed_digest;
  }
  record.grant = {
      .name = std::string(name), .scopes = parsed_scopes, .prefix = std::string(topics.substr(0, topics.size() - 1))};
  TOCSIN_TRY(ValidateGrant(record.grant));
  return record;
}

Result<std::vector<TokenRecord>> ParseTokensOf(const std::string& path, std::string_view text) {
  auto records = ParseTokens(text);
  if (!records) return std::unexpected(std::move(records).error().Prefixed(path));
  return records;
}

/// Reads the records, calls `change` with them, and writes them.
template <class Change>
Status Edit(const std::string& path, Change change) {
  return EditPrivate(path, [&](const std::string& text) -> Result<std::string> {
    TOCSIN_ASSIGN(auto records, ParseTokensOf(path, text));
    TOCSIN_TRY(change(records));
    return TokensText(records);
  });
}

}  // namespace

Result<std::string> MakeToken() {
  std::array<uint8_t, kIdBytes> id{};
  std::array<uint8_t, kSecretBytes> secret{};
  if (RAND_bytes(id.data(), id.size()) != 1 || RAND_priv_bytes(secret.data(), secret.size()) != 1) {
    return Fail(Code::kIo, "the system gives no random bytes");
  }
  std::string token(kMark);
  AppendBase32(token, id);
  token += '_';
  AppendBase32(token, secret);
  OPENSSL_cleanse(secret.data(), secret.size());
  return token;
}

std::optional<TokenParts> SplitToken(std::string_view token) {
  if (token.size() != kMark.size() + kTokenIdSize + 1 + kSecretSize || !token.starts_with(kMark)) return std::nullopt;
  token.remove_prefix(kMark.size());
  const TokenParts parts{.id = token.substr(0, kTokenIdSize), .secret = token.substr(kTokenIdSize + 1)};
  if (token[kTokenIdSize] != '_' || !IsTokenId(parts.id) || !IsBase32(parts.secret)) return std::nullopt;
  return parts;
}

Digest DigestOf(std::string_view secret) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), digest.data());
  return digest;
}

bool SameDigest(const Digest& a, const Digest& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

std::string DigestText(const Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

std::optional<Digest> ParseDigest(std::string_view text) {
  Digest digest{};
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t nibble = kHex.find(text[i]);
    if (nibble == std::string_view::npos) return std::nullopt;
    digest[i / 2] = static_cast<uint8_t>(digest[i / 2] << 4 | nibble);
  }
  return digest;
}

Result<std::vector<TokenRecord>> ParseTokens(std::string_view text) {
  std::vector<TokenRecord> records;
  std::unordered_set<std::string> ids;
  std::unordered_set<std::string> subjects;
  std::string_view format;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line.starts_with('#')) continue;
    if (format.empty()) {
      if (line != kFormat && line != kFormatWithCertificates) {
        return Fail(Code::kUnsupportedFormat, "line {}: \"{}\" or \"{}\" is expected here", number, kFormat,
                    kFormatWithCertificates);
      }
      format = line;
      continue;
    }
    auto record = ParseLine(line, format == kFormatWithCertificates);
    if (!record) return std::unexpected(std::move(record).error().Prefixed(fmt::format("line {}", number)));
    if (!ids.insert(record->id).second) {
      return Fail(Code::kInvalidArgument, "line {}: the id {} is in two lines", number, record->id);
    }
    if (!record->certificate.empty() && !subjects.insert(record->certificate).second) {
      return Fail(Code::kInvalidArgument, "line {}: the certificate {} is in two lines", number, record->certificate);
    }
    records.push_back(*std::move(record));
  }
  return records;
}

std::string TokensText(const std::vector<TokenRecord>& records) {
  const bool plain = std::ranges::all_of(records, &std::string::empty, &TokenRecord::certificate);
  std::string text = fmt::format("{}\n{}\n", kComment, plain ? kFormat : kFormatWithCertificates);
  for (const TokenRecord& record : records) {
    text += fmt::format(
        "{}\t{}\t{}*\t{}\t{}\t{}\n", record.id, record.grant.scopes.Text(), record.grant.prefix, record.created,
        record.certificate.empty() ? DigestText(record.digest) : std::string(kCertificate) + record.certificate,
        record.grant.name);
  }
  return text;
}

Result<std::vector<TokenRecord>> ListTokens(const std::string& path) {
  TOCSIN_ASSIGN(const std::string text, ReadPrivate(path));
  return ParseTokensOf(path, text);
}

namespace {

/// Adds a record with a new id, which `fill` completes. Returns a token with that id.
template <class Fill>
Result<std::string> Add(const std::string& path, const Grant& grant, Time now, Fill fill) {
  TOCSIN_TRY(ValidateGrant(grant));
  std::string made;
  TOCSIN_TRY(Edit(path, [&](std::vector<TokenRecord>& records) -> Status {
    do {
      TOCSIN_ASSIGN(made, MakeToken());
    } while (std::ranges::find(records, SplitToken(made)->id, &TokenRecord::id) != records.end());
    TokenRecord record{.id = std::string(SplitToken(made)->id),
                       .grant = grant,
                       .created = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", std::chrono::floor<std::chrono::seconds>(now))};
    TOCSIN_TRY(fill(records, record, made));
    records.push_back(std::move(record));
    return {};
  }));
  return made;
}

}  // namespace

Result<std::string> CreateToken(const std::string& path, const Grant& grant, Time now) {
  return Add(path, grant, now, [](const auto&, TokenRecord& record, const std::string& made) -> Status {
    record.digest = DigestOf(SplitToken(made)->secret);
    return {};
  });
}

Result<std::string> CreateCertificate(const std::string& path, const Grant& grant, const std::string& subject,
                                      Time now) {
  TOCSIN_TRY(CheckSubject(subject));
  TOCSIN_ASSIGN(const std::string made,
                Add(path, grant, now, [&](const auto& records, TokenRecord& record, const auto&) -> Status {
                  if (std::ranges::find(records, subject, &TokenRecord::certificate) != records.end()) {
                    return FailField(Code::kConflict, "certificate", "{} has the certificate {} already", path,
                                     subject);
                  }
                  record.certificate = subject;
                  return {};
                }));
  return std::string(SplitToken(made)->id);
}

Status RevokeToken(const std::string& path, const std::string& id) {
  if (!StampOf(path)) return Fail(Code::kNotFound, "there is no file {}", path);
  return Edit(path, [&](std::vector<TokenRecord>& records) -> Status {
    if (std::erase_if(records, [&](const TokenRecord& record) { return record.id == id; }) > 0) return {};
    std::vector<std::string> known;
    for (const TokenRecord& record : records) known.push_back(record.id);
    return FailField(Code::kNotFound, "id", "{} has no access token with the id \"{}\"{}", path, id,
                     DidYouMean(id, known));
  });
}

}  // namespace tocsin::auth
