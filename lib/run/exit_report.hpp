// The exit report: why an attempt ended, as runtime/failure/failure_report.hpp writes it to failure.json and to the
// file that LOCKSTEP_VERDICT names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct ExitReport {
  int code = 1;                             // exit code, 1 to 255 (base/error.hpp)
  int signal = 0;                           // that ended the rank; 0: none
  std::string host;                         // of the rank; empty if it is not a host name
  std::string sentence;                     // what happened, for people; may be unprintable
  int rank = -1;                            // that failed; -1: unknown
  std::vector<std::string> bad_hosts = {};  // that the next attempt should avoid; invalid host names are dropped
  std::string error_line =
      {};  // printed by the program of a role, if it shows why that failed (slurm/retry/text_cause)
};

// Nothing if `text` is not a JSON object with a valid `code` and a `sentence`. Other invalid fields have their
// defaults.
std::optional<ExitReport> parse_exit_report(std::string_view text);
// Nothing also if the file cannot be read (run_file.hpp), or has more than 64 KiB.
std::optional<ExitReport> read_exit_report(const std::filesystem::path& file);

}  // namespace lockstep
