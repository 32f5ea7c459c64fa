// A program that was started, and what it prints.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/io/descriptor.hpp"

namespace lockstep {

class ChildProcess {
 public:
  // Starts words[0], found in PATH, with this process's environment and `variables`. It reads nothing, prints into one
  // pipe, and is terminated when this process ends. Throws Error(other) where the system starts none; a program that
  // cannot be found says so and ends with 127. For processes of one thread.
  ChildProcess(const std::vector<std::string>& words, const std::map<std::string, std::string>& variables);
  ChildProcess(ChildProcess&&) = default;

  void signal(int number) const;  // nothing once it has ended
  // The lines that it has printed since the last call, without their ends; long ones are cut in pieces. Does not wait.
  std::vector<std::string> lines();
  int handle() const { return output_; }  // for poll(); -1 when its output has ended
  // As shells count: 128 and the number of a signal that ended it. Nothing while it runs or its output has not ended.
  std::optional<int> exit_code();

 private:
  struct Pipe {
    Descriptor end;    // to read from
    Descriptor start;  // to write to
  };
  static Pipe make_pipe();
  ChildProcess(const std::vector<std::string>& words, const std::map<std::string, std::string>& variables, Pipe output,
               Pipe input);

  Descriptor output_;
  pid_t process_ = -1;
  std::string rest_;  // of a line without its end
  std::optional<int> code_;
};

}  // namespace lockstep
