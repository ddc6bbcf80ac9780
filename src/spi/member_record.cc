#include "spi/member_record.h"

#include <charconv>

#include <fmt/format.h>

namespace tocsin {

std::string EncodeMember(const Member& member) {
  return fmt::format("http={}\nresp={}\njoined_ms={}\n", member.http, member.resp, ToMs(member.joined));
}

Member DecodeMember(std::string id, std::string_view record) {
  Member member{.id = std::move(id)};
  while (!record.empty()) {
    const std::string_view line = record.substr(0, record.find('\n'));
    record.remove_prefix(std::min(line.size() + 1, record.size()));
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, equals);
    const std::string_view value = line.substr(equals + 1);
    if (name == "http") member.http = value;
    if (name == "resp") member.resp = value;
    if (name == "joined_ms") {
      int64_t joined_ms = 0;
      std::from_chars(value.data(), value.data() + value.size(), joined_ms);
      member.joined = FromMs(joined_ms);
    }
  }
  return member;
}

}  // namespace tocsin
