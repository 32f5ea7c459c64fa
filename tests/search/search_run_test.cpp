#include "search/search_run.hpp"

#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

TEST(BestTrialTest, the_metric_decides_then_the_steps_then_the_number) {
  Space space;
  std::map<std::int64_t, TrialRecord> trials;
  EXPECT_EQ(best_trial(space, trials), std::nullopt);
  trials[1].metric = 0.5;
  trials[2].metric = 0.7;
  trials[3].metric = 0.7;
  trials[4].metric = 0.9;
  trials[4].code = 79;  // at a later rung
  trials[5].code = 2;
  EXPECT_EQ(best_trial(space, trials), 2);
  trials[3].steps = 10;
  EXPECT_EQ(best_trial(space, trials), 3);
  space.smaller_is_better = true;
  EXPECT_EQ(best_trial(space, trials), 1);
}

TEST(RunToEndTest, returns_lines_and_code) {
  const ProgramOutput output = run_to_end({"sh", "-c", "echo one; echo two >&2; exit 3"});
  EXPECT_EQ(output.code, 3);
  EXPECT_EQ(output.lines, (std::vector<std::string>{"one", "two"}));
}

TEST(BestModelTest, is_a_copy) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "trial");
  const std::string model(5'000'000, 'm');
  write_file_atomically(folder.path() / "trial/model.h5", model);
  keep_best_model(folder.path() / "trial", folder.path());
  EXPECT_EQ(read_file(folder.path() / "best.h5", 1 << 24), model);
}

}  // namespace
}  // namespace lockstep
