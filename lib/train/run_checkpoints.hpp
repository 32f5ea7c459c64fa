// Lists the checkpoints of a training for people, from its folders and metrics.jsonl, without reading weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// One line for each of `steps`, which are ascending: its epoch and test results, as far as `metrics` has them, and
// whether it is the newest or that of `best_step`. `metrics` is the text of metrics.jsonl, of unknown origin. Empty if
// there are no steps.
std::string checkpoints_text(std::span<const std::int64_t> steps, std::string_view metrics,
                             std::optional<std::int64_t> best_step);

// The same for the training in `folder`, for `inspect`. Unreadable information is left out.
std::string describe_checkpoints(const std::filesystem::path& folder);

}  // namespace lockstep
