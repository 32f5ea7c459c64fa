// A study on disk: study.json, which programs read again, and a table for others. Field by field in apps/scaling.md.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "scaling/study.hpp"

namespace lockstep {

// One JSON object on several lines.
std::string study_text(const Study& study);

// What study_text() wrote, from a file of unknown origin that `name` names. Throws Error(bad_data) naming the field
// that is wrong.
Study parse_study(std::string_view text, std::string_view name);
// The same; throws as read_file() too.
Study read_study(const std::filesystem::path& file);

// CSV: a line for each repeat of each point, seconds of a step and of its parts.
std::string study_csv(const Study& study);

// Whether a file begins as study_text() and study_csv() do: for require_place_for_result().
bool begins_as_study(std::string_view start);
bool begins_as_study_csv(std::string_view start);

}  // namespace lockstep
