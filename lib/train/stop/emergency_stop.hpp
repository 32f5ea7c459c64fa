// Emergency stop: what rank 0 does if it is asked to stop while its main thread is in a step or a test.
//
// It logs at once that the training stops. A step may take longer than mpirun waits: mpirun sends SIGCONT, SIGTERM and
// SIGKILL, one second apart (Open MPI 4: odls_base_sigkill_timeout). So a thread saves the last completed step at
// SIGCONT. If the main thread does not stop in time, the thread saves again before SIGKILL and ends the process. If
// mpirun itself is killed, or exits at a second Ctrl-C, the thread saves and ends the process at once. Weights change
// only in the update at the end of a step, which waits for the thread (step/state_lock).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "job/job_environment.hpp"
#include "runtime/stop/process_signals.hpp"
#include "step/state_lock.hpp"
#include "train/opening/checkpointing.hpp"

namespace lockstep {

class EmergencyStop {
 public:
  // Access to the training. The functions are called only while the main thread modifies nothing.
  struct Training {
    StateLock* state = nullptr;  // null: another thread cannot read the state
    std::function<std::int64_t()> completed_steps;
    std::function<Checkpoint()> checkpoint;
    std::function<void(const Checkpointing::Kept&)> end;  // ends the process
  };

  // Runs on rank 0 during steps and tests. `kill_delay`: how mpirun ends this rank; unset if unknown. All arguments
  // outlive this.
  EmergencyStop(const ProcessSignals& signals, std::optional<KillDelay> kill_delay, Checkpointing& checkpoints,
                Training training);
  EmergencyStop(const EmergencyStop&) = delete;
  EmergencyStop& operator=(const EmergencyStop&) = delete;
  ~EmergencyStop();

 private:
  // Whether this process was suspended since the last check; a SIGCONT then only resumes it.
  enum class Since { ran, was_stopped };

  bool can_save() const { return training_.state != nullptr && checkpoints_.is_on(); }
  void watch();
  void look(Since since);
  void look_for_launcher();
  void look_for_signals(Since since);
  void announce_kill(double seconds_left);
  void say_what_comes();
  void save_early();
  void end_in_time();
  Checkpointing::Kept save_before_kill();

  const ProcessSignals& signals_;
  std::optional<KillDelay> kill_delay_;
  Checkpointing& checkpoints_;
  Training training_;
  int launcher_;                      // parent process if it is mpirun and alive; otherwise 0
  bool has_lost_launcher_ = false;    // mpirun ended before this training
  ProcessSignals::Received proceed_;  // last values seen
  ProcessSignals::Received terminate_;
  bool has_told_ = false;
  bool has_saved_early_ = false;
  std::optional<Stopwatch> since_announcement_;  // time since mpirun announced a kill
  double seconds_to_kill_ = 0;                   // delay of the kill at its announcement
  std::optional<Stopwatch> since_terminate_;     // time since SIGTERM from mpirun
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace lockstep
