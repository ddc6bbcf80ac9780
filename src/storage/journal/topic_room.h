// How many topics a journal has room for. Every segment begins with the settings of all topics, once for each lane, so
// that it can be read without the segments before it. Pure numbers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tocsin::journal {

/// The settings of a topic that pulls, with a name of 30 bytes. A sink's URL and a longer name come on top.
constexpr uint64_t kTopicTextBytes = 60;

/// What the settings of all topics may take in one lane: those of all lanes take up half of a segment at most.
constexpr uint64_t TopicTextBytesMax(uint64_t segment_bytes, uint32_t lanes) {
  return segment_bytes / std::max<uint64_t>(4, uint64_t{2} * lanes);
}

/// How many topics of kTopicTextBytes that is.
constexpr uint64_t TopicsThatFit(uint64_t segment_bytes, uint32_t lanes) {
  return TopicTextBytesMax(segment_bytes, lanes) / kTopicTextBytes;
}

}  // namespace tocsin::journal
