// How a training stands, as the first line of its summary.json says. The line has one width for all states, so that
// whoever sees the training end by a failure changes it in place: a signal handler, or a rank that is not the writer.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

enum class RunState : std::uint8_t {
  running,  // or killed, where nobody holds the folder's lock
  stopped,  // in good order; the same command goes on
  done,
  failed,    // failure.json says why
  diverged,  // the loss, or a gradient, is not a finite number
};

std::string_view name_of(RunState state);
// Nothing where no state has the name.
std::optional<RunState> run_state_of(std::string_view name);

// summary.json: the state in the first line, then the fields of the object `summary`, among which it is not.
std::string summary_text(RunState state, const nlohmann::json& summary);

// From `running` to `failed` or `stopped`, in the file of that name; any other state stands, and so does a file with
// several hard links. Async-signal-safe; keeps quiet where it cannot be done, for a failure is being told.
void mark_failed(const char* summary_file) noexcept;
void mark_stopped(const char* summary_file) noexcept;

}  // namespace lockstep
