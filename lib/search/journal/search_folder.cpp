#include "search/journal/search_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <system_error>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/io/partial_file.hpp"
#include "base/system_failure.hpp"
#include "base/text/number.hpp"
#include "files/model_file.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view trial_prefix = "trial-";

}  // namespace

std::optional<std::int64_t> trial_in_name(const std::string& name) {
  if (!name.starts_with(trial_prefix)) return std::nullopt;
  const std::string digits = name.substr(trial_prefix.size());
  const std::optional<std::int64_t> number = parse_number<std::int64_t>(digits, {1, std::int64_t{1} << 53});
  return number && std::to_string(*number) == digits ? number : std::nullopt;
}

fs::path SearchFolder::trial(std::int64_t number) const { return path_ / fmt::format("{}{}", trial_prefix, number); }
fs::path SearchFolder::log(std::int64_t trial) const { return path_ / fmt::format("{}{}.log", trial_prefix, trial); }
fs::path SearchFolder::exit_report(std::int64_t trial) const {
  return path_ / fmt::format("{}{}.end.json", trial_prefix, trial);
}

fs::path SearchFolder::exit_report(std::int64_t trial, std::int64_t lease) const {
  return path_ / fmt::format("{}{}.lease-{}.end.json", trial_prefix, trial, lease);
}

void SearchFolder::require_no_trials() const {
  std::error_code error;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
    require(!trial_in_name(entry->path().filename()), Failure::usage,
            "'{}' exists, but the journal '{}' is missing or empty, so the results of earlier trials are not known. "
            "Restore the journal, or choose another --output.",
            entry->path().string(), journal().string());
  }
}

void SearchFolder::require_own_folder(std::int64_t trial) const {
  std::error_code ignored;
  const fs::path folder = this->trial(trial);
  const fs::file_type type = fs::symlink_status(folder, ignored).type();
  require(type == fs::file_type::not_found || type == fs::file_type::directory, Failure::usage,
          "'{}' is a {}, not the folder of a trial. Nothing is written there. Move it elsewhere, and the same command "
          "continues the search.",
          folder.string(), type == fs::file_type::symlink ? "symbolic link" : "file");
}

std::optional<Descriptor> SearchFolder::open_log(std::int64_t trial) const {
  const fs::path file = log(trial);
  Descriptor opened(create_new_file(file.c_str()));
  constexpr int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;  // waits for no pipe's reader
  // careful-open: for a file of an earlier attempt, in a folder that this process has locked
  if (opened < 0 && errno == EEXIST) opened = Descriptor(::open(file.c_str(), flags));
  if (opened >= 0 && ::flock(opened, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return std::nullopt;
  if (opened >= 0) return opened;
  throw system_failure(fmt::format("cannot write '{}'", file.string()), errno, Access::writing, "the trial's output");
}

void SearchFolder::keep_best_model(std::int64_t trial, std::int64_t steps) const {
  const fs::path file = model(trial);
  constexpr const char* way_on = "best.h5 is not written. Remove that file, and the same command makes it again.";
  const std::optional<std::string> bytes = read_run_file(file, tensor_file_limits::file_bytes);
  require(bytes.has_value(), Failure::bad_data, "'{}' is not a regular file, or cannot be read. {}", file.string(),
          way_on);
  std::string image = *bytes;  // parsing may change it
  ModelFile found;
  try {
    found = parse_model_file(file, image);
  } catch (const Error& error) {
    throw Error(error.failure(), fmt::format("{} {}", error.what(), way_on));
  }
  require(found.step == steps, Failure::bad_data,
          "'{}' was trained for {} steps, but the result of trial {} is that after {} steps. {}", file.string(),
          found.step.value_or(0), trial, steps, way_on);
  write_file_atomically(best_model(), *bytes);
}

}  // namespace lockstep
