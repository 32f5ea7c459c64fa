#include "run/run_state.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/text/choice.hpp"
#include "base/text/json_text.hpp"

namespace lockstep {
namespace {

constexpr std::array<Choice<RunState>, 5> states{{{"running", RunState::running},
                                                  {"stopped", RunState::stopped},
                                                  {"done", RunState::done},
                                                  {"failed", RunState::failed},
                                                  {"diverged", RunState::diverged}}};

// In JSON, spaces before the comma have no meaning.
constexpr std::string_view running_start = "{\n \"state\": \"running\" ,\n";
constexpr std::string_view failed_start = "{\n \"state\": \"failed\"  ,\n";
constexpr std::string_view stopped_start = "{\n \"state\": \"stopped\" ,\n";
static_assert(running_start.size() == failed_start.size() && running_start.size() == stopped_start.size());

void mark(const char* summary_file, std::string_view new_start) noexcept {
  // careful-open: in a signal handler; a pipe is not waited for, a link not followed
  const int file = ::open(summary_file, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return;
  struct stat status {};
  std::array<char, running_start.size()> start{};
  const bool is_running = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
                          ::pread(file, start.data(), start.size(), 0) == static_cast<ssize_t>(start.size()) &&
                          std::string_view(start.data(), start.size()) == running_start;
  if (is_running) static_cast<void>(::pwrite(file, new_start.data(), new_start.size(), 0) + 0);
  ::close(file);
}

}  // namespace

std::string_view name_of(RunState state) { return std::ranges::find(states, state, &Choice<RunState>::value)->name; }

std::string_view name_of_end(RunState state) { return state == RunState::running ? "killed" : name_of(state); }

std::optional<RunState> run_state_of(std::string_view name) {
  const auto* const found = find_choice(states, name);
  return found == nullptr ? std::nullopt : std::optional(found->value);
}

std::string_view same_command(std::string_view resume) {
  return resume.empty() || resume == "auto" ? "same command" : "same command without --resume";
}

std::string summary_text(RunState state, const nlohmann::json& summary) {
  constexpr std::size_t longest_name = 8;
  const std::string_view name = name_of(state);
  const std::string start =
      "{\n \"state\": \"" + std::string(name) + '"' + std::string(longest_name - name.size(), ' ') + ",\n";
  constexpr std::string_view opening = "{\n";
  return start + json_lines(summary).substr(opening.size()) + "\n";
}

void mark_failed(const char* summary_file) noexcept { mark(summary_file, failed_start); }
void mark_stopped(const char* summary_file) noexcept { mark(summary_file, stopped_start); }

}  // namespace lockstep
