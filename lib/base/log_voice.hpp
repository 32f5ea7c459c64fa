// Who speaks for a training, where a job has several of them side by side.
#pragma once

#include <string>

namespace lockstep::log {

// While it lives, what otherwise the job's rank 0 says (see base/log) is said where `rank`, within the training, is 0.
// A label tells trainings apart: lines then start with "[rank 2, gpu07, LABEL]", and there is no live line, for a
// terminal has room for one. One at a time in a process; without a label and with the job's ranks it changes nothing.
class Voice {
 public:
  Voice(int rank, const std::string& label);
  Voice(const Voice&) = delete;
  Voice& operator=(const Voice&) = delete;
  ~Voice();
};

int job_rank();  // of this process, as set_node_leader() was told

}  // namespace lockstep::log
