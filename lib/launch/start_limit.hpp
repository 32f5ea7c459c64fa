// Limits the time that MPI takes to start. A rank that hangs in MPI_Init reports nothing, and other ranks cannot see it
// yet. Without a limit, the job would keep its nodes until Slurm's time limit.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace lockstep {

class StartLimit {
 public:
  // Starts a thread that ends the process with code 76 unless this object is destroyed within `seconds`. The thread
  // prints a sentence and writes it to `exit_report_file` as well. 0: no limit.
  StartLimit(double seconds, const std::string& exit_report_file);
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
