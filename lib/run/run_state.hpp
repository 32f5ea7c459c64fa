// The state of a training, stored in the first line of its summary.json. The line has the same width for all states. A
// signal handler, or a rank that is not the writer, can therefore change it in place after a failure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

enum class RunState : std::uint8_t {
  running,  // also after a kill; then nobody holds the folder's lock
  stopped,  // in an orderly way; the same command resumes it
  done,
  failed,    // failure.json has the reason
  diverged,  // the loss or a gradient is NaN or infinite
};

std::string_view name_of(RunState state);
// Nothing if no state has the name.
std::optional<RunState> run_state_of(std::string_view name);
// The state in which an attempt ended that another one resumed: its name, except that `running` is "killed".
std::string_view name_of_end(RunState state);

// "same command", which resumes a training that was started with --resume `resume`; otherwise "same command without
// --resume". Empty means auto.
std::string_view same_command(std::string_view resume);

// The text of summary.json: the state in the first line, then the fields of the object `summary`, which must not
// contain the state.
std::string summary_text(RunState state, const nlohmann::json& summary);

// Changes `running` to `failed` or `stopped` in the named file. Any other state stays, and so does a file with several
// hard links. Async-signal-safe. Ignores errors, because another failure is being reported.
void mark_failed(const char* summary_file) noexcept;
void mark_stopped(const char* summary_file) noexcept;

}  // namespace lockstep
