// How the files of a run, the output folder of a training, are read: as untrusted files that another process may be
// writing, replacing or removing. Nothing here throws because of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/regular_file.hpp"

namespace lockstep {

namespace run_files {
inline constexpr const char* summary = "summary.json";
inline constexpr const char* metrics = "metrics.jsonl";
inline constexpr const char* failure = "failure.json";
inline constexpr const char* lock = "lock";
inline constexpr const char* checkpoints = "checkpoints";  // the default folder for them
}  // namespace run_files

// Nothing if the file is absent or unreadable, or is a link, a pipe, a device or a folder.
std::optional<RegularFile> open_run_file(const std::filesystem::path& path);

// The bytes from `offset`, at most `max_bytes`; fewer if the file ends there or cannot be read.
std::string read_at(const RegularFile& file, std::size_t offset, std::size_t max_bytes);

// The whole file, as long as it is when it is opened. Nothing as open_run_file(), or if it is larger than
// `limit_bytes`.
std::optional<std::string> read_run_file(const std::filesystem::path& path, std::size_t limit_bytes);

// Time of the last write, in seconds since 1970. Nothing if there is no such file.
std::optional<std::int64_t> written_at(const std::filesystem::path& path);

// Fields of a JSON object. A field of another type or outside its range counts as absent. If a name is repeated, its
// last value counts.

// An integer from 0 to 2^53, which every program reads exactly. 3.0 is not one.
std::optional<std::int64_t> count_in(const nlohmann::json& object, std::string_view field);
// A number from 0 to 1e15: trainings measure nothing that is negative.
std::optional<double> number_in(const nlohmann::json& object, std::string_view field);
// A finite number, such as a metric of a program's own.
std::optional<double> finite_number_in(const nlohmann::json& object, std::string_view field);
// Empty if absent. May be unprintable (base/text/printable).
std::string text_in(const nlohmann::json& object, std::string_view field);
// The strings of a list; elements of other types are left out.
std::vector<std::string> texts_in(const nlohmann::json& object, std::string_view field);

}  // namespace lockstep
