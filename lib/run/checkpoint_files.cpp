#include "run/checkpoint_files.hpp"

#include <fmt/format.h>

#include <ranges>
#include <string_view>
#include <system_error>

#include "base/text/number.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Nothing if it is not the name of a checkpoint.
std::optional<std::int64_t> step_in(const std::string& name) {
  constexpr std::size_t start = 5;
  if (name.size() < start) return std::nullopt;
  const auto step = parse_number<std::int64_t>(std::string_view(name).substr(start, 12), {0, 999'999'999'999});
  return step && checkpoint_name(*step) == name ? step : std::nullopt;
}

}  // namespace

std::string checkpoint_name(std::int64_t step) { return fmt::format("step-{:012}.h5", step); }

std::map<std::int64_t, fs::path> checkpoints_in(const fs::path& folder) {
  std::error_code error;
  std::map<std::int64_t, fs::path> found;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    if (const std::optional<std::int64_t> step = step_in(at->path().filename().string())) found[*step] = at->path();
  }
  return found;
}

std::optional<NewestCheckpoint> newest_checkpoint(const fs::path& folder) {
  const std::map<std::int64_t, fs::path> all = checkpoints_in(folder);
  for (const auto& [step, path] : all | std::views::reverse) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) return NewestCheckpoint{step, path, written_at(path).value_or(0)};
  }
  return std::nullopt;
}

}  // namespace lockstep
