// Records of TensorBoard's hparams plugin (tensorboard/plugins/hparams: api.proto, plugin_data.proto), as the bytes of
// an Event without its time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "search/space/space.hpp"

namespace lockstep {

enum class SessionStatus : std::uint8_t { success = 1, failure = 2 };

// The first record of a file.
std::string event_file_version();
// Names and ranges of the hyperparameters, the metric, and which search it is: that in the folder `output`.
std::string experiment_event(const Space& space, const std::filesystem::path& output);
// A trial's settings: numbers as numbers, words as strings.
std::string session_start_event(const Space& space, const std::vector<OptionWord>& settings);
std::string session_end_event(SessionStatus status);
std::string metric_event(std::string_view tag, std::int64_t step, double value);

}  // namespace lockstep
