#include "launch/start_limit.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdlib>

#include "base/error.hpp"
#include "base/log.hpp"
#include "job/job_environment.hpp"
#include "runtime/failure/failure_report.hpp"

namespace lockstep {

StartLimit::StartLimit(double seconds, const std::string& exit_report_file) {
  if (seconds <= 0) return;
  failure_report::set_exit_report_file(exit_report_file);
  // Signals must go to the main thread, which waits in MPI.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, seconds] { wait(seconds); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

StartLimit::~StartLimit() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    has_started_ = true;
  }
  started_.notify_one();
  thread_.join();
}

void StartLimit::wait(double seconds) {
  std::unique_lock lock(mutex_);
  if (started_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return has_started_; })) return;
  constexpr int code = static_cast<int>(Failure::out_of_step);
  const std::string sentence = fmt::format(
      "MPI did not start within {:g} s. A rank hangs in MPI_Init, or a node does not answer. Start again. If starting "
      "takes this long here, raise {}.",
      seconds, start_timeout_variable);
  if (failure_report::write({code, 0, sentence})) log::error(sentence);
  std::_Exit(code);
}

}  // namespace lockstep
