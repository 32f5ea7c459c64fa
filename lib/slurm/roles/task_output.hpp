// The output of the tasks of a step. srun marks lines with their task if the step has several (srun --label).
//
// srun writes a mark and the line after it separately. Its other thread may write messages in between:
//
//   1: srun: error: n2: task 1: Exited with exit code 1
//   cp: x: No space left on device
//
// A marked line that begins as srun's messages do is therefore held until the next line shows whose it is.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct OutputLine {
  std::string text;        // without srun's mark
  bool is_marked = false;  // printed by a task; otherwise by srun, or by a step's only task
};

class TaskOutput {
 public:
  // Keeps the last `lines` lines of each task.
  TaskOutput(std::size_t tasks, std::size_t lines) : lines_(lines), kept_(tasks) {}

  // Takes a line of srun's output. Returns the lines that it completes, oldest first.
  std::vector<OutputLine> take(const std::string& line);
  // Returns the lines that are held when the output has ended.
  std::vector<OutputLine> take_end();
  // The last lines of a task, oldest first. Long lines are cut.
  std::vector<std::string> last_of(std::size_t task) const;

 private:
  struct Mark {
    std::size_t task;
    std::size_t length;  // in letters
  };
  std::optional<Mark> mark_of(std::string_view line) const;
  OutputLine keep(std::string_view line);
  void keep_for(std::size_t task, std::string_view text);

  std::size_t lines_;
  std::vector<std::deque<std::string>> kept_;
  std::vector<std::string> held_;  // the first has a mark, the others are messages of srun
};

}  // namespace lockstep
