// The output of the tasks of a step. srun marks lines with their task if the step has several (srun --label).
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class TaskOutput {
 public:
  // Keeps the last `lines` lines of each task.
  TaskOutput(std::size_t tasks, std::size_t lines) : lines_(lines), kept_(tasks) {}

  // Takes a line of srun's output. Returns it without srun's mark.
  std::string_view take(std::string_view line);
  // The last lines of a task, oldest first. Long lines are cut.
  std::vector<std::string> last_of(std::size_t task) const;

 private:
  std::size_t lines_;
  std::vector<std::deque<std::string>> kept_;
};

}  // namespace lockstep
