// Events as TensorBoard reads them: protocol buffers of tensorflow/core/util/event.proto and
// core/framework/summary.proto, each in the frame of a TFRecord. Written by hand, for they are few.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// CRC-32C (Castagnoli; RFC 3720, B.4), rotated and moved on by a constant, as TFRecord has it: the sum of a file that
// holds such sums would be a weak one.
std::uint32_t masked_crc32c(std::string_view bytes);
// Length, its sum, the bytes, their sum; little-endian.
std::string tf_record(std::string_view bytes);

// When and where in a training. `step`: steps done.
struct EventPlace {
  double time = 0;  // seconds since 1970
  std::int64_t step = 0;
};

struct Scalar {
  std::string tag;
  float value = 0;
};

// Bytes of one Event each, without their frame. The first of a file:
std::string version_event(double time);
// What readers have seen of `place.step` and later steps holds no more.
std::string restart_event(const EventPlace& place);
std::string scalars_event(const EventPlace& place, std::span<const Scalar> scalars);
// Markdown. Valid UTF-8.
std::string text_event(const EventPlace& place, std::string_view tag, std::string_view text);

}  // namespace lockstep
