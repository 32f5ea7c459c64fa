// Chooses the printing rank of a training when a job runs several trainings side by side.
#pragma once

#include <string>

namespace lockstep::log {

// While a LogScope exists, the process prints what rank 0 prints (see base/log) if its `rank` within the training is 0.
// A label distinguishes the trainings: lines start with "[rank 2, gpu07, LABEL]". There is then no progress line,
// because a terminal has room for one. At most one exists in a process. With no label and the job's ranks it has no
// effect.
class LogScope {
 public:
  LogScope(int rank, const std::string& label);
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;
  ~LogScope();
};

int job_rank();  // the rank of this process in the job, as given to set_identity()

}  // namespace lockstep::log
