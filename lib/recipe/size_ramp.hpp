// How images grow over a training: small ones at first, which cost less, and their full size at the end (progressive
// resizing, as FFCV's recipes for ImageNet have it).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Images have sides of `from` pixels until `start` epochs are done, and their full size from `end` on. In between they
// grow in a straight line, to the nearest multiple of `multiple`.
struct SizeRamp {
  std::int64_t from = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t multiple = 32;
  bool operator==(const SizeRamp&) const = default;
};

// The side of the images in `epoch`, counted from 0, of a training whose images have `full` pixels at the end, at least
// as many as at its beginning: get_resolution() of FFCV's train_imagenet.py, halves to the even multiple, but never
// outside [from, full].
std::int64_t side_in_epoch(const SizeRamp& ramp, std::int64_t full, std::int64_t epoch);

// "160:65:76" (FROM:START:END), or "24:0:6:4" with another multiple than 32; nothing where it is no ramp.
std::optional<SizeRamp> parse_size_ramp(std::string_view text);
std::string size_ramp_text(const SizeRamp& ramp);

}  // namespace lockstep
