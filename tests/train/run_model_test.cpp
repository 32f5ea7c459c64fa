#include "train/pretrained/run_model.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/io/file.hpp"
#include "files/model_file.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::run_model_test {

class RunModelTest : public testing::Test {
 protected:
  void write(const std::filesystem::path& name, std::string_view text) const {
    std::filesystem::create_directories((run_ / name).parent_path());
    write_file_atomically(run_ / name, text);
  }
  void write_model_of_step(const std::filesystem::path& name, std::int64_t step) const {
    ModelFile model{"lenet", {"a"}, {32, 32, 3}, {0, 0, 0}, {1, 1, 1}, {{"fc1.bias", {2}, {1, 2}}}};
    model.shorter_side = 0;
    model.step = step;
    std::filesystem::create_directories((run_ / name).parent_path());
    write_model_file(run_ / name, model);
  }
  std::string quoted() const { return "'" + run_.string() + "'"; }

  TemporaryFolder folder_;
  const std::filesystem::path run_ = folder_.path() / "a run";
};

TEST_F(RunModelTest, the_model_of_the_best_test_comes_first) {
  write("model.h5", "last");
  write("model-best.h5", "best");
  write("checkpoints/step-000000000020.h5", "best");
  write("summary.json", R"({"state": "running", "best_step": 20})");
  EXPECT_EQ(model_of_run(run_).file, run_ / "model-best.h5");
  EXPECT_EQ(named_model(run_).description, "model-best.h5 of " + quoted());
  EXPECT_EQ(named_model(run_ / "model.h5").file, run_ / "model.h5");
  EXPECT_EQ(named_model(run_ / "model.h5").description, "");
}

TEST_F(RunModelTest, without_it_the_checkpoint_of_the_best_test) {
  write("model.h5", "last");
  write("checkpoints/step-000000000020.h5", "best");
  write("checkpoints/step-000000000030.h5", "newest");
  write("summary.json", R"({"state": "running", "best_step": 20})");
  const RunModel model = model_of_run(run_);
  EXPECT_EQ(model.file, run_ / "checkpoints" / "step-000000000020.h5");
  expect_message(model.description, {quoted(), "step 20"});
}

// After a full disk, an old model-best.h5 stood for the best test.
TEST_F(RunModelTest, model_best_of_another_step_comes_after_the_checkpoint_of_the_best_test) {
  write("model.h5", "last");
  write("summary.json", R"({"state": "failed", "best_step": 12})");
  write_model_of_step("model-best.h5", 12);
  EXPECT_EQ(model_of_run(run_).description, "model-best.h5 of " + quoted());
  write_model_of_step("model-best.h5", 4);
  EXPECT_EQ(model_of_run(run_).file, run_ / "model-best.h5");
  expect_message(model_of_run(run_).description, {"model-best.h5", quoted(), "step 4", "step 12"});
  write("checkpoints/step-000000000012.h5", "damaged");
  EXPECT_EQ(model_of_run(run_).file, run_ / "model-best.h5");
  write_model_of_step("checkpoints/step-000000000012.h5", 12);
  EXPECT_EQ(model_of_run(run_).file, run_ / "checkpoints" / "step-000000000012.h5");
  expect_message(model_of_run(run_).description, {quoted(), "step 12"});
}

// A training with --checkpoints elsewhere gave its final weights.
TEST_F(RunModelTest, the_checkpoints_may_lie_elsewhere) {
  write("model.h5", "last");
  write("../kept/step-000000000020.h5", "best");
  write("summary.json",
        R"({"state": "done", "best_step": 20, "run": {"checkpoints": ")" + (folder_.path() / "kept").string() + "\"}}");
  EXPECT_EQ(model_of_run(run_).file, folder_.path() / "kept" / "step-000000000020.h5");
}

TEST_F(RunModelTest, without_both_the_weights_at_the_end) {
  write("model.h5", "last");
  for (const char* summary :
       {R"({"best_step": 20})", R"({"best_step": null})", R"({"best_step": "20"})", "[20]", "no"}) {
    write("summary.json", summary);
    EXPECT_EQ(model_of_run(run_).file, run_ / "model.h5") << summary;
    expect_message(model_of_run(run_).description, {"model.h5", quoted()});
  }
  std::filesystem::remove(run_ / "summary.json");
  EXPECT_EQ(model_of_run(run_).file, run_ / "model.h5");
}

TEST_F(RunModelTest, a_search_has_the_model_of_its_best_trial) {
  write("best.h5", "best");
  EXPECT_EQ(model_of_run(run_).file, run_ / "best.h5");
}

TEST_F(RunModelTest, a_folder_without_a_model_is_refused) {
  write("summary.json", R"({"best_step": 20})");
  write("checkpoints/step-000000000030.h5", "newest");
  expect_error(Failure::usage, {quoted()}, [&] { model_of_run(run_); });
}

}  // namespace lockstep::run_model_test
