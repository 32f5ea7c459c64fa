// What rank 0 of a training does when it is asked to stop, while its main thread is in a step or a test.
//
// It says at once that the training stops. Steps may take longer than mpirun waits: it sends SIGCONT, SIGTERM and
// SIGKILL, a second between one and the next (Open MPI 4: odls_base_sigkill_timeout). So a thread saves the last
// completed step at SIGCONT and, unless the main thread stops in order in time, again before SIGKILL. Then it ends the
// process. If mpirun itself is killed, or ends at a second Ctrl-C, the thread saves and ends at once. Weights only
// change in the update at the end of a step, which waits for the thread (step/state_lock).
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
#include "train/checkpointing.hpp"

namespace lockstep {

class EmergencyStop {
 public:
  // Of the training. Functions are called while the main thread changes nothing.
  struct Training {
    StateLock* state = nullptr;  // null: its state cannot be read beside the main thread
    std::function<std::int64_t()> completed_steps;
    std::function<Checkpoint()> checkpoint;
    std::function<void(const Checkpointing::Kept&)> end;  // ends the process
  };

  // Rank 0's, while steps and tests are made. `kill_delay`: how mpirun ends this rank; nothing: nobody knows. All
  // outlive this.
  EmergencyStop(const ProcessSignals& signals, std::optional<KillDelay> kill_delay, Checkpointing& checkpoints,
                Training training);
  EmergencyStop(const EmergencyStop&) = delete;
  EmergencyStop& operator=(const EmergencyStop&) = delete;
  ~EmergencyStop();

 private:
  // Whether this process has been stopped since the last look: then SIGCONT means that it goes on.
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
  int launcher_;                      // the process that started this one, while it is there; 0: not mpirun
  bool has_lost_launcher_ = false;    // it has ended before this training
  ProcessSignals::Received proceed_;  // as seen so far
  ProcessSignals::Received terminate_;
  bool has_told_ = false;
  bool has_saved_early_ = false;
  std::optional<Stopwatch> since_announcement_;  // of a kill
  double seconds_to_kill_ = 0;                   // then
  std::optional<Stopwatch> since_terminate_;     // by mpirun
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace lockstep
