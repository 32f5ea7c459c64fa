// A bound on how long MPI may take to start. A rank that hangs in MPI_Init tells nobody, no other can see it yet, and
// its job would keep its nodes until Slurm's time limit.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace lockstep {

class StartLimit {
 public:
  // Unless it is destroyed within `seconds`, a thread ends the process with code 76 and a sentence that goes to
  // `verdict_file` too. 0: no bound.
  StartLimit(double seconds, const std::string& verdict_file);
  StartLimit(const StartLimit&) = delete;
  StartLimit& operator=(const StartLimit&) = delete;
  ~StartLimit();

 private:
  void wait(double seconds);

  std::mutex mutex_;
  std::condition_variable started_;
  bool has_started_ = false;
  std::thread thread_;
};

}  // namespace lockstep
