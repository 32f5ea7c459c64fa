// Deaths are told also where there is more to do than processors.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::watcher_under_load_test {

class BusyProcesses {
 public:
  explicit BusyProcesses(int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t process = ::fork();
      if (process == 0) spin();
      processes_.push_back(process);
    }
  }
  BusyProcesses(const BusyProcesses&) = delete;
  BusyProcesses& operator=(const BusyProcesses&) = delete;
  ~BusyProcesses() {
    for (const pid_t process : processes_) {
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
    }
  }

 private:
  [[noreturn]] static void spin() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    volatile unsigned turns = 0;
    while (true) turns = turns + 1;
  }
  std::vector<pid_t> processes_;
};

int tries() {
  const char* const stated = std::getenv("LOCKSTEP_TRIES");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return stated == nullptr ? 2 : std::atoi(stated);
}

// The rank that saw the death got a processor too late: others had ended, and mpirun then killed it.
TEST(WatcherUnderLoadTest, the_death_of_the_only_rank_of_a_node_is_told_every_time) {
  const BusyProcesses load(9);
  int told = 0;
  for (int i = 0; i < tries(); ++i) {
    const TemporaryFolder folder;
    const int rank = i % 2 == 0 ? 2 : 0;
    const ProgramResult result =
        run_program(under_mpirun(3, {built_program("watched_program").string(), "1", std::to_string(rank), "kill", "10",
                                     folder.path().string()}));
    const std::filesystem::path file = folder.path() / "failure.json";
    ASSERT_TRUE(std::filesystem::exists(file)) << "after " << told << " that were told: " << result.errors;
    EXPECT_EQ(nlohmann::json::parse(read_file(file, 1 << 16))["rank"], rank) << result.errors;
    ++told;
  }
  EXPECT_EQ(told, tries());
}

}  // namespace lockstep::watcher_under_load_test
