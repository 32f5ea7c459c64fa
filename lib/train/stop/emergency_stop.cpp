#include "train/stop/emergency_stop.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"

namespace lockstep {

namespace {

constexpr auto period = std::chrono::milliseconds(20);
constexpr double stopped_seconds = 0.3;  // between two checks; longer means that the process was suspended
// If a rank dies, mpirun ends the others. The watcher needs this time to detect the death first.
constexpr double death_seconds = 0.2;

// mpirun, or its daemon on another node.
bool is_launcher(int process) {
  constexpr std::array<std::string_view, 6> names = {"mpirun\n", "mpiexec\n", "orterun\n",
                                                     "orted\n",  "prterun\n", "prted\n"};
  if (process <= 0) return false;
  try {
    const std::string name = read_live_file(fmt::format("/proc/{}/comm", process), 64);
    return std::ranges::find(names, name) != names.end();
  } catch (const Error&) {
    return false;  // the process has ended
  }
}

std::string stop_request_message(int signal, bool has_checkpoints) {
  return fmt::format(
      "{}: the training stops after this step, {}. A second {} ends it at once.", signal_name(signal),
      has_checkpoints ? "with a checkpoint" : "without a checkpoint (neither --checkpoints nor --output is set)",
      signal == SIGINT ? "Ctrl-C" : "signal");
}

std::string describe_newest_checkpoint(std::optional<std::int64_t> step) {
  return step ? fmt::format("The newest checkpoint is from step {}.", *step) : "There is no checkpoint.";
}

enum class Saving { possible, impossible };

// The newest checkpoint, and whether a newer one will be written.
std::string describe_saving(std::optional<std::int64_t> newest, Saving saving) {
  return describe_newest_checkpoint(newest) +
         (saving == Saving::possible ? " The last completed step is being saved." : "");
}

std::string kill_message(double seconds_left, const KillDelay& delay, const std::string& saving) {
  return fmt::format(
      "mpirun is ending this training (Ctrl-C or SIGTERM). It kills the ranks in {} s. {} For more time, use {}.",
      seconds_left, saving,
      delay.has_option ? fmt::format("mpirun --mca {} 60, or kill -USR1", kill_delay_option) : "kill -USR1 to mpirun");
}

}  // namespace

EmergencyStop::EmergencyStop(const ProcessSignals& signals, std::optional<KillDelay> kill_delay,
                             Checkpointing& checkpoints, Training training)
    : signals_(signals),
      kill_delay_(kill_delay),
      checkpoints_(checkpoints),
      training_(std::move(training)),
      launcher_(kill_delay && is_launcher(::getppid()) ? ::getppid() : 0),
      proceed_(signals.proceed()),
      thread_([this] { watch(); }) {}

EmergencyStop::~EmergencyStop() {
  {
    const std::lock_guard guard(mutex_);
    is_over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void EmergencyStop::watch() {
  std::unique_lock guard(mutex_);
  for (Stopwatch since_look; !wake_.wait_for(guard, period, [this] { return is_over_; });) {
    const Since since = since_look.seconds() > stopped_seconds ? Since::was_stopped : Since::ran;
    since_look = Stopwatch();
    look(since);
  }
}

void EmergencyStop::look(Since since) {
  look_for_launcher();
  look_for_signals(since);
  if (since_announcement_ && since_announcement_->seconds() < death_seconds) return;
  say_what_comes();
  if (!can_save()) return;
  if (since_terminate_) return end_in_time();
  if (since_announcement_) save_early();
}

// At a second Ctrl-C mpirun exits at once. MPI then ends the ranks, after a second or more.
void EmergencyStop::look_for_launcher() {
  if (launcher_ == 0 || ::getppid() == launcher_) return;
  launcher_ = 0;
  has_lost_launcher_ = true;
  has_told_ = false;
  kill_delay_->seconds = std::max(kill_delay_->seconds, 1.0);
  announce_kill(kill_delay_->seconds);
  since_terminate_.emplace();
}

void EmergencyStop::look_for_signals(Since since) {
  const ProcessSignals::Received proceed = signals_.proceed();
  const ProcessSignals::Received terminate = signals_.terminate();
  const bool has_proceeded = std::exchange(proceed_, proceed).count != proceed.count;
  const bool is_terminated = std::exchange(terminate_, terminate).count != terminate.count;
  if (kill_delay_ && has_proceeded && since == Since::ran && is_launcher(proceed.sender)) {
    announce_kill(2 * kill_delay_->seconds);
  }
  if (kill_delay_ && is_terminated && is_launcher(terminate.sender)) {
    announce_kill(kill_delay_->seconds);
    since_terminate_.emplace();
  }
  const bool is_false_alarm =
      since_announcement_ && !since_terminate_ && since_announcement_->seconds() > 2 * kill_delay_->seconds + 1;
  if (is_false_alarm) {
    log::info_to_terminal("mpirun sent SIGCONT, but no SIGTERM. The training continues.");
    since_announcement_.reset();
    has_saved_early_ = has_told_ = false;
  }
}

void EmergencyStop::say_what_comes() {
  if (has_told_ || (!since_announcement_ && !signals_.is_stop_requested())) return;
  has_told_ = true;
  const std::string saving =
      describe_saving(checkpoints_.newest_step(), can_save() ? Saving::possible : Saving::impossible);
  if (has_lost_launcher_) {
    log::info_to_terminal("mpirun has ended, so this training ends, too. " + saving);
  } else if (since_announcement_) {
    log::info_to_terminal(kill_message(seconds_to_kill_, *kill_delay_, saving));
  } else {
    log::info_to_terminal(stop_request_message(signals_.request(), checkpoints_.is_on()));
  }
}

void EmergencyStop::announce_kill(double seconds_left) {
  if (since_announcement_) return;
  since_announcement_.emplace();
  seconds_to_kill_ = seconds_left;
}

// Writes in the background, like any checkpoint; the current step may continue.
void EmergencyStop::save_early() {
  if (has_saved_early_) return;
  const auto reading = training_.state->try_read();
  if (!reading || !checkpoints_.is_idle()) return;
  if (!checkpoints_.is_written(training_.completed_steps())) checkpoints_.write(training_.checkpoint());
  has_saved_early_ = true;
}

void EmergencyStop::end_in_time() {
  constexpr double margin_seconds = 0.5;
  const double needed_seconds = margin_seconds + 3 * checkpoints_.seconds_to_write();
  const double due_seconds = has_lost_launcher_ ? 0 : std::max(death_seconds, kill_delay_->seconds - needed_seconds);
  if (since_terminate_->seconds() < due_seconds) return;
  const auto reading = training_.state->try_read();
  if (!reading) return;  // an update is running, or the training is stopping normally
  training_.end(save_before_kill());
}

// A checkpoint that takes too long remains a partial file, which the next start removes.
Checkpointing::Kept EmergencyStop::save_before_kill() {
  constexpr double report_grace_seconds = 0.2;
  const std::int64_t step = training_.completed_steps();
  bool has_begun = false;
  while (since_terminate_->seconds() < kill_delay_->seconds - report_grace_seconds) {
    if (checkpoints_.is_idle()) {
      if (has_begun || checkpoints_.is_written(step)) return checkpoints_.last();
      checkpoints_.write(training_.checkpoint());
      has_begun = true;
    }
    std::this_thread::sleep_for(period);
  }
  return {{}, "mpirun does not leave enough time. " + describe_newest_checkpoint(checkpoints_.newest_step())};
}

}  // namespace lockstep
