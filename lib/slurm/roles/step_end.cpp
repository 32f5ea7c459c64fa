#include "slurm/roles/step_end.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "base/error.hpp"
#include "base/text/number.hpp"
#include "slurm/node_list.hpp"

namespace lockstep {
namespace {

// srun's names of signals.
constexpr std::array<std::pair<std::string_view, int>, 8> signal_text{{{"Killed", SIGKILL},
                                                                       {"Terminated", SIGTERM},
                                                                       {"Aborted", SIGABRT},
                                                                       {"Segmentation fault", SIGSEGV},
                                                                       {"Bus error", SIGBUS},
                                                                       {"Floating point exception", SIGFPE},
                                                                       {"Illegal instruction", SIGILL},
                                                                       {"Broken pipe", SIGPIPE}}};

std::vector<std::string> hosts_in(std::string_view list) {
  try {
    return expand_node_list(list);
  } catch (const Error&) {
    return {};
  }
}

std::optional<std::size_t> place_of_task(const RoleStep& step, const std::vector<InstanceSlot>& slots,
                                         const TaskEnd& task) {
  std::vector<std::size_t> there;
  for (const std::size_t place : step.places) {
    if (std::ranges::find(task.hosts, slots.at(place).node) != task.hosts.end()) there.push_back(place);
  }
  if (!there.empty() && there.front() == there.back()) return there.front();
  const bool is_one_component = std::ranges::all_of(step.places, [&](std::size_t place) {
    return slots.at(place).component == slots.at(step.places.front()).component;
  });
  const auto number = static_cast<std::size_t>(task.task);
  return is_one_component && number < step.places.size() ? std::optional(step.places[number]) : std::nullopt;
}

// A surviving rank's message about a rank on another node (runtime/link).
bool is_of_silent_death(const ExitReport& exit_report) {
  return exit_report.signal == 0 && exit_report.sentence.find("killed or ended without a word") != std::string::npos;
}

}  // namespace

std::optional<TaskEnd> parse_task_end(std::string_view line) {
  constexpr std::string_view start = "srun: error: ";
  if (!line.starts_with(start)) return std::nullopt;
  line.remove_prefix(start.size());
  const std::size_t end_of_hosts = line.find(": task");
  if (end_of_hosts == std::string_view::npos) return std::nullopt;
  TaskEnd end;
  end.hosts = hosts_in(line.substr(0, end_of_hosts));
  line.remove_prefix(end_of_hosts + std::string_view(": task").size());
  const std::size_t digits = line.find_first_of("0123456789");
  const std::size_t words = line.find(": ");
  if (end.hosts.empty() || digits == std::string_view::npos || words == std::string_view::npos || words < digits) {
    return std::nullopt;
  }
  const std::string_view tasks = line.substr(digits, words - digits);
  const std::optional<std::int64_t> task =
      parse_number<std::int64_t>(tasks.substr(0, tasks.find_first_not_of("0123456789")), {0, max_instances});
  if (!task) return std::nullopt;
  end.task = *task;
  const std::string_view what = line.substr(words + 2);
  const auto* const found =
      std::ranges::find_if(signal_text, [&](const auto& row) { return what.starts_with(row.first); });
  if (found != signal_text.end()) end.signal = found->second;
  constexpr std::string_view exited = "Exited with exit code ";
  if (what.starts_with(exited)) end.code = parse_number<int>(what.substr(exited.size()), {1, 255}).value_or(0);
  return end;
}

bool is_node_failure(std::string_view line) { return line.starts_with("srun: error: Node failure on "); }

TaskEnd first_cause(const std::optional<TaskEnd>& earlier, const TaskEnd& later) {
  return earlier && earlier->signal != SIGPIPE ? *earlier : later;
}

StepEnd step_end(const RoleStep& step, const std::vector<InstanceSlot>& slots, int launcher_code,
                 const std::optional<ExitReport>& exit_report, const std::optional<TaskEnd>& task) {
  StepEnd end;
  end.code = launcher_code;
  end.host = slots.at(step.places.front()).node;
  if (launcher_code == 0) return end;
  if (task) {
    end.first = place_of_task(step, slots, *task);
    end.host = task->hosts.front();
  }
  if (!exit_report) {
    // srun's own code is the highest one of the step, which may be that of a task that it killed.
    if (task && task->code != 0) end.code = task->code;
    constexpr int signal_base = 128;
    if (task && task->signal != 0 && launcher_code == signal_base + SIGPIPE) end.code = signal_base + task->signal;
    return end;
  }
  end.code = exit_report->code;
  end.signal = exit_report->signal;
  end.sentence = exit_report->sentence;
  if (!exit_report->host.empty()) end.host = exit_report->host;
  const bool is_of_step = exit_report->rank >= 0 && static_cast<std::size_t>(exit_report->rank) < step.places.size();
  if (is_of_step) end.first = step.places[static_cast<std::size_t>(exit_report->rank)];
  const bool srun_knows = task && std::ranges::find(task->hosts, end.host) != task->hosts.end();
  if (srun_knows && is_of_silent_death(*exit_report)) end.signal = task->signal;
  return end;
}

std::vector<std::size_t> places_by_end(const RoleStep& step, const StepEnd& end) {
  std::vector<std::size_t> places = step.places;
  const auto repeated = std::ranges::unique(places);  // ranks of one instance
  places.erase(repeated.begin(), repeated.end());
  const auto first = end.first ? std::ranges::find(places, *end.first) : places.end();
  if (first != places.end()) std::rotate(places.begin(), first, first + 1);
  return places;
}

}  // namespace lockstep
