// What a training says and keeps where mpirun ends it, told by a process of that name.
#include "train/stop/emergency_stop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "support/samples/small_checkpoint.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::emergency_stop_test {

using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::int64_t completed_steps = 12;

class EmergencyStopTest : public testing::Test {
 protected:
  EmergencyStopTest() {
    checkpoints_.begin(10, nullptr);
    state_.let_go();  // in a step
  }
  ~EmergencyStopTest() override {
    state_.hold();
    for (const pid_t process : launchers_) {
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
    }
  }

  // A process of that name sends `signal` to this one.
  void send(const char* name, int signal) {
    const pid_t process = ::fork();
    if (process == 0) {
      ::prctl(PR_SET_NAME, name);
      ::kill(::getppid(), signal);
      ::pause();
      ::_exit(0);
    }
    launchers_.push_back(process);
  }

  // What it says on the way and how it ends, within `patience`; `copying` is what a copy of the state takes.
  std::string watch(const char* sender, int signal, std::chrono::milliseconds copying,
                    std::chrono::milliseconds patience) {
    testing::internal::CaptureStdout();
    {
      const EmergencyStop stop(signals_, KillDelay{1, true}, checkpoints_,
                               {&state_, [] { return completed_steps; },
                                [copying] {
                                  std::this_thread::sleep_for(copying);
                                  return small_checkpoint(completed_steps);
                                },
                                [this](const Checkpointing::Kept& kept) {
                                  if (ends_ == 0) kept_ = kept;
                                  ++ends_;
                                }});
      send(sender, signal);
      const auto end = std::chrono::steady_clock::now() + patience;
      while (ends_ == 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(5ms);
    }
    return testing::internal::GetCapturedStdout();
  }

  TemporaryFolder folder_;
  ProcessSignals signals_{Stopping::graceful};
  Communicator world_{MPI_COMM_WORLD};
  StopAgreement stops_{world_, nullptr, std::nullopt};
  Checkpointing checkpoints_{world_, {folder_.path(), {}, {}, "never"}, nullptr, stops_};
  StateLock state_;
  std::atomic<int> ends_ = 0;
  Checkpointing::Kept kept_;
  std::vector<pid_t> launchers_;
};

TEST_F(EmergencyStopTest, before_mpirun_kills_the_last_completed_step_is_saved) {
  EXPECT_THAT(watch("mpirun", SIGTERM, 0ms, 10s),
              AllOf(HasSubstr(" 1 s"), HasSubstr("odls_base_sigkill_timeout 60"), HasSubstr("-USR1")));
  EXPECT_EQ(kept_.failure, "");
  EXPECT_EQ(read_checkpoint(kept_.path).state.progress.step, completed_steps);
}

TEST_F(EmergencyStopTest, where_the_time_is_too_short_it_says_so) {
  watch("mpirun", SIGTERM, 1500ms, 10s);
  EXPECT_THAT(kept_.failure, HasSubstr("mpirun"));
}

// A shell's `fg` sends it too.
TEST_F(EmergencyStopTest, SIGCONT_from_mpirun_saves_and_ends_nothing) {
  EXPECT_THAT(watch("mpirun", SIGCONT, 0ms, 3500ms), HasSubstr("SIGCONT"));
  EXPECT_EQ(ends_, 0);
  EXPECT_EQ(checkpoints_.newest_step(), completed_steps);
}

TEST_F(EmergencyStopTest, others_may_wait_for_the_end_of_the_step) {
  EXPECT_THAT(watch("sh", SIGTERM, 0ms, 1500ms), HasSubstr("SIGTERM"));
  EXPECT_EQ(ends_, 0);
  EXPECT_FALSE(checkpoints_.newest_step());
}

}  // namespace lockstep::emergency_stop_test
