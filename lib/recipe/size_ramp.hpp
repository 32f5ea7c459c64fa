// Progressive resizing: images grow over a training, as in FFCV's ImageNet recipes. Small images cost less.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Images have sides of `from` pixels up to epoch `start`, and their full size from epoch `end` on. In between the size
// grows linearly, rounded to the nearest multiple of `multiple`.
struct SizeRamp {
  std::int64_t from = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t multiple = 32;
  bool operator==(const SizeRamp&) const = default;
};

// Image side in `epoch` (counted from 0) if images have `full` pixels at the end; `full` >= ramp.from. Follows
// get_resolution() in FFCV's train_imagenet.py: ties round to the even multiple. The result is clamped to [from, full].
std::int64_t side_in_epoch(const SizeRamp& ramp, std::int64_t full, std::int64_t epoch);

// Parses "160:65:76" (FROM:START:END), or "24:0:6:4" with another multiple than 32. std::nullopt if invalid.
std::optional<SizeRamp> parse_size_ramp(std::string_view text);
std::string size_ramp_text(const SizeRamp& ramp);

}  // namespace lockstep
