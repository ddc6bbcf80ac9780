// Bytes as text: UTF-8, base64, percent escapes. Appends to the caller's string; no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tocsin {

/// Whether every sequence of `bytes` is well-formed (RFC 3629).
bool IsUtf8(std::string_view bytes);
/// A name from a client, for an error message: cut short between characters, with \\xHH for bytes that are not UTF-8.
std::string Shown(std::string_view name);

/// RFC 4648, with padding.
void AppendBase64(std::string& out, std::string_view bytes);
/// Nothing if `text` is not what AppendBase64 writes for some bytes.
std::optional<std::string> DecodeBase64(std::string_view text);

/// For a segment of a path or a value of a query: everything except letters, digits and -._~ becomes %XX.
void AppendPercent(std::string& out, std::string_view text);
/// %XX becomes its byte; `plus_is_space` as in a query. Nothing if an escape is malformed.
std::optional<std::string> DecodePercent(std::string_view text, bool plus_is_space);

}  // namespace tocsin
