// How a topic's due jobs reach their receivers: consumers reserve them (pull), or the server hands them to one sink.
// Pure values. A sink's settings are texts by name, so that stores and front ends need not know any sink; the one table
// below says which there are, and what each may be. Settings are stored: a field may be added and its range may widen,
// but it never goes and its range never narrows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace tocsin {

struct Delivery {
  std::string sink;  // empty: pull
  /// By name, those alone that were set; every text is valid for its field.
  std::map<std::string, std::string, std::less<>> settings;

  bool Pushes() const { return !sink.empty(); }
  /// The setting, or its default. The name is one of the table for this sink.
  std::string_view Text(std::string_view name) const;
  uint64_t Number(std::string_view name) const;  // of kNumber and kMillis
  bool Flag(std::string_view name) const;

  friend bool operator==(const Delivery&, const Delivery&) = default;
};

/// Where jobs go, for the log: the scheme and the authority of a URL, whose rest may be a secret, or the names that a
/// broker knows.
std::string PlaceOf(const Delivery& delivery);

/// A change of a delivery: another sink begins with its defaults; for the same one, what is not named keeps its value.
struct DeliveryChange {
  std::optional<std::string> sink;  // "pull", or a sink's name
  std::map<std::string, std::string, std::less<>> settings;
};
void Apply(const DeliveryChange& change, Delivery& delivery);

/// The sink has to be known, each setting one of its own and within its limits, and those without a default present.
/// Errors name the field as delivery.NAME, and the nearest known name.
Status Validate(const Delivery& delivery);

enum class DeliveryFieldKind : uint8_t { kText, kNumber, kMillis, kFlag };  // a flag is "true" or "false"

struct DeliveryField {
  std::string_view name;
  std::string_view sinks;  // whose it is, between spaces; empty: every sink's
  DeliveryFieldKind kind = DeliveryFieldKind::kText;
  uint64_t min = 0;  // of numbers, and of the bytes of texts
  uint64_t max = 0;
  std::string_view fallback;  // of texts without one: it has to be given, unless min is 0
  std::string_view doc;
};

/// The sinks' names, and all fields of all of them. A name that two sinks have means the same for both.
std::span<const std::string_view> SinkNames();
std::span<const DeliveryField> DeliveryFields();
/// Those of one sink, in the order of the table.
std::vector<const DeliveryField*> DeliveryFieldsOf(std::string_view sink);
/// Of any sink: a name is there once.
std::vector<std::string_view> DeliverySettingNames();
/// Null if the sink has no such setting.
const DeliveryField* FindDeliveryField(std::string_view sink, std::string_view name);

}  // namespace tocsin
