#include "train/run_inspection.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/io/file.hpp"
#include "files/model_file.hpp"
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

// After a full disk, model-best.h5 was shown as that of the best test.
TEST(RunInspectionTest, model_best_of_another_step_is_shown_with_its_step) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "summary.json", R"({"state":"failed","best_step":12,"best_accuracy":0.5})");
  ModelFile model{"lenet", {"a"}, {32, 32, 3}, {0, 0, 0}, {1, 1, 1}, {{"fc1.bias", {2}, {1, 2}}}};
  model.shorter_side = 0;
  for (const int step : {12, 4}) {
    model.step = step;
    write_model_file(folder.path() / "model-best.h5", model);
    EXPECT_THAT(describe_run(folder.path()), HasSubstr(step == 12 ? "after step 12 (model-best.h5)\n"
                                                                  : "after step 12 (model-best.h5 is of step 4)\n"));
  }
}

// Nothing was said of them.
TEST(RunInspectionTest, trainers_of_their_own_are_counted_and_those_that_left_say_why) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "summary.json", R"({"state":"stopped","reducer":"ps"})");
  const auto change = [](int step, int number, int there, const std::string& more) {
    return fmt::format(
        R"({{"kind":"trainer","epoch":1,"step":{},"trainer":{},"host":"n\u001b1","process":"4711","trainers":{},{}}})"
        "\n",
        step, number, there, more);
  };
  std::string lines = R"({"kind":"training","epoch":1,"step":2})"
                      "\n";
  write_file_atomically(folder.path() / "metrics.jsonl", lines);
  EXPECT_THAT(describe_run(folder.path()), Not(HasSubstr("trainers")));
  lines += change(3, 0, 1, R"("change":"joined")") + change(3, 1, 2, R"("change":"joined")") +
           change(7, 0, 1, R"("change":"left","reason":"leaves: it rains")");
  write_file_atomically(folder.path() / "metrics.jsonl", lines);
  EXPECT_THAT(describe_run(folder.path()),
              HasSubstr("\n  exchange   ps\n  trainers   1 since step 7; 2 joined, 1 left\n"
                        "    in step 7, trainer 0 (process 4711 on n\\x1b1) leaves: it rains\n  command "));
  for (int step = 8; step < 14; ++step) lines += change(step, 1, 0, R"("change":"left","reason":"has ended")");
  write_file_atomically(folder.path() / "metrics.jsonl", lines);
  EXPECT_THAT(describe_run(folder.path()),
              AllOf(HasSubstr("0 since step 13; 2 joined, 7 left\n    the first 2 not shown"),
                    Not(HasSubstr("in step 8,")), HasSubstr("in step 9,")));
}

}  // namespace lockstep::run_inspection_test
