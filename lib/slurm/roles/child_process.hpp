// A child process and its output.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/io/descriptor.hpp"

namespace lockstep {

class ChildProcess {
 public:
  // Starts words[0], found in PATH, with this process's environment and `variables`. Its standard input is empty, and
  // its standard output and standard error share one pipe. It is a process group of its own, so that Ctrl-C reaches
  // only this process. It is terminated when this process ends. Throws Error(other) if the system cannot start a
  // process. A program that is not found prints an error and exits with 127.
  ChildProcess(const std::vector<std::string>& words, const std::map<std::string, std::string>& variables);
  // The same with open files as its standard input and its standard error.
  ChildProcess(const std::vector<std::string>& words, const std::map<std::string, std::string>& variables,
               const Descriptor& input, const Descriptor& errors);
  ChildProcess(ChildProcess&&) = default;

  void signal(int number) const;  // no effect once it has ended
  void kill_group() const;        // SIGKILL to all processes of its group; no effect once it has ended
  // Returns the lines printed since the last call, without newlines. Long lines are split. Does not wait.
  std::vector<std::string> lines();
  int handle() const { return output_; }  // for poll(); -1 once its output is closed
  // The exit code, or 128 + the signal that ended it, as shells count. Nullopt while it runs or its output is open:
  // processes that it leaves behind may write for 2 seconds, then those of its group are killed. Call it repeatedly.
  std::optional<int> exit_code();

 private:
  struct Pipe {
    Descriptor end;    // to read from
    Descriptor start;  // to write to
  };
  static Pipe make_pipe();
  ChildProcess(const std::vector<std::string>& words, const std::map<std::string, std::string>& variables, Pipe output,
               int input, int errors);

  bool has_ended() const;
  void end_survivors();

  Descriptor output_;
  pid_t process_ = -1;
  std::string rest_;                    // a line whose newline has not arrived
  std::optional<Stopwatch> since_end_;  // of the process; its output is still open
  std::optional<int> code_;
};

}  // namespace lockstep
