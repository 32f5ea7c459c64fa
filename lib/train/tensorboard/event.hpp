// Events in TensorBoard's format: protocol buffers of tensorflow/core/util/event.proto and
// core/framework/summary.proto, framed as TFRecords. The few messages are encoded by hand.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// CRC-32C (Castagnoli; RFC 3720, B.4), rotated and offset by a constant as TFRecord requires, because a CRC of data
// that contain CRCs is weak.
std::uint32_t masked_crc32c(std::string_view bytes);
// Length, CRC of the length, data, CRC of the data; little-endian.
std::string tf_record(std::string_view bytes);

// Time and step of an event. `step`: number of steps done.
struct EventPlace {
  double time = 0;  // in seconds since 1970
  std::int64_t step = 0;
};

struct Scalar {
  std::string tag;
  float value = 0;
};

// The following functions return the bytes of one Event without frame. This one must be the first of a file:
std::string version_event(double time);
// Tells readers to discard events of `place.step` and later steps.
std::string restart_event(const EventPlace& place);
std::string scalars_event(const EventPlace& place, std::span<const Scalar> scalars);
// `text` is Markdown in valid UTF-8.
std::string text_event(const EventPlace& place, std::string_view tag, std::string_view text);

}  // namespace lockstep
