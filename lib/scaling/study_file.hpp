// A study on disk: study.json, which programs read again, and a CSV table. apps/scaling.md describes the fields.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "scaling/study.hpp"

namespace lockstep {

// Its name in the output folder of scaling_study.
inline constexpr const char* study_file = "study.json";

// One JSON object over several lines.
std::string study_text(const Study& study);

// The inverse of study_text(). The text is untrusted; `name` is its file. Throws Error(bad_data) that names the wrong
// field.
Study parse_study(std::string_view text, std::string_view name);
// The same for a file. Also throws what read_file() throws.
Study read_study(const std::filesystem::path& file);

// CSV: one line for each repeat of each point, with the seconds of a step and of its parts.
std::string study_csv(const Study& study);

// Whether a file begins like the output of study_text() or study_csv(): for require_place_for_result().
bool begins_as_study(std::string_view start);
bool begins_as_study_csv(std::string_view start);

}  // namespace lockstep
