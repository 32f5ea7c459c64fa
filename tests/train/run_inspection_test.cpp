#include "train/run_inspection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::run_inspection_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Programs with training loops of their own measure no accuracy, but metrics of their own.
class OwnLoopTest : public testing::Test {
 protected:
  void write(const char* name, std::string_view text) const { write_file_atomically(folder_.path() / name, text); }

  TemporaryFolder folder_;
};

TEST_F(OwnLoopTest, its_metrics_are_those_of_the_newest_validation) {
  write("metrics.jsonl", R"({"kind":"validation","epoch":1,"step":50,"x":400,"y":-0.5}
{"kind":"training","epoch":1,"step":100,"z":1}
{"kind":"validation","epoch":1,"step":100,"x":800,"y":-2.25,"name":"\u001b"}
)");
  ASSERT_TRUE(holds_run(folder_.path()));
  EXPECT_THAT(describe_run(folder_.path()),
              AllOf(HasSubstr("no summary.json"), HasSubstr("x 800, y -2.25 after step 100"), Not(HasSubstr("z 1"))));
  write("summary.json",
        R"({"state":"done","model":"count_up","step":100,"steps":100,"ranks":8,"validation_metrics":{"x":800}})");
  EXPECT_THAT(describe_run(folder_.path()),
              AllOf(HasSubstr("'count_up'"), HasSubstr("100 of 100"), HasSubstr("x 800, y -2.25 after step 100"),
                    HasSubstr("8 (by mpirun or srun)"), Not(HasSubstr("test  "))));
}

TEST_F(OwnLoopTest, without_a_validation_nothing_is_measured) {
  write("metrics.jsonl", "no line of metrics\n");
  EXPECT_THAT(describe_run(folder_.path()), HasSubstr("not measured"));
}

}  // namespace lockstep::run_inspection_test
