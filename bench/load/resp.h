// RESP as the drivers need it: commands made by hand, and answers skimmed in place.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "load/stamp.h"

namespace tocsin::bench::resp {

/// "$5\r\nhello\r\n"
std::string Bulk(std::string_view text);
void AppendBulk(std::string& out, std::string_view text);
/// "*3\r\n$4\r\nPING..." of words that are known beforehand.
std::string Command(std::initializer_list<std::string_view> words);
std::string Head(size_t words);

/// One element at the front of what was received.
struct Element {
  char kind = 0;          // the first byte: + - : $ *
  int64_t number = 0;     // the value of `:`, the elements of `*`, -1 for null
  std::string_view text;  // of + - $
};

/// Takes an element from the front; nothing, and `in` as it was, if it is not whole. Dies if it is malformed.
std::optional<Element> Next(std::string_view& in);

/// Takes the head of an array. Dies if the answer is an error or something else.
std::optional<size_t> NextArray(std::string_view& in, std::string_view command);

/// Skips elements with all that they contain. False if they are not complete.
bool Skip(std::string_view& in, size_t elements);

/// One command and its answer, on a connection of its own.
std::string Ask(const Endpoint& endpoint, std::string_view command);

}  // namespace tocsin::bench::resp
