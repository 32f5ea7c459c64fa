// The checkpoints of a training, in words for people: from its folders and metrics.jsonl, without reading weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// A line for each of `steps`, which rise: the epoch it lies in and the test made there, as far as `metrics` (the text
// of metrics.jsonl, of unknown origin) says; which is the newest, and which was made at `best_step`. Empty without
// steps.
std::string checkpoints_text(std::span<const std::int64_t> steps, std::string_view metrics,
                             std::optional<std::int64_t> best_step);

// The same of the training in `folder`, for `inspect`. What cannot be read is left out.
std::string describe_checkpoints(const std::filesystem::path& folder);

}  // namespace lockstep
