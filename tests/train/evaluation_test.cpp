#include "train/evaluation/evaluation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "nn/initialize.hpp"
#include "support/samples/small_data_set.hpp"
#include "train/evaluation/evaluation_text.hpp"

namespace lockstep::evaluation_test {

constexpr std::int64_t samples = 1037;  // no multiple of a batch, of the ranks or of the shards

class EvaluationTest : public testing::Test {
 protected:
  EvaluationTest() {
    if (world_.rank() == 0) write_small_data_set(folder_, {8, 8, 3}, samples, 300);
    world_.barrier();
    dataset_ = std::make_unique<Dataset>(folder_);
    backend_ = open_backend({.name = "cpu", .threads = 1});
    Device& device = backend_->device();
    model_ = std::make_unique<Model>(device, ModelOptions{"resnet20", {8, 8, 3}, 10});
    model_->store.allocate(device.make_persistent(model_->store.gradient_buffer_count(), DType::f32));
    initialize(model_->store, 5);
  }
  ~EvaluationTest() override {
    dataset_.reset();
    world_.barrier();
    if (world_.rank() == 0) std::filesystem::remove_all(folder_);
  }

  const Communicator world_{MPI_COMM_WORLD};
  const Communicator self_{MPI_COMM_SELF};
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("evaluation_test_" + std::to_string(world_.size()));
  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  const ImageRules rules_{{8, 8}};
};

TEST_F(EvaluationTest, is_the_same_on_any_number_of_ranks) {
  const Evaluation together =
      Evaluator(world_, *backend_, *model_, *dataset_, rules_, 1, DataPlace::automatic, TestTimeAugmentation::plain)
          .evaluate();
  const Evaluation alone =
      Evaluator(self_, *backend_, *model_, *dataset_, rules_, 1, DataPlace::automatic, TestTimeAugmentation::plain)
          .evaluate();
  EXPECT_EQ(together.predictions, alone.predictions);
  EXPECT_EQ(together.confusion, alone.confusion);
  EXPECT_EQ(together.in_top5, alone.in_top5);
  EXPECT_EQ(together.loss_sum, alone.loss_sum);
}

TEST_F(EvaluationTest, counts_each_sample_once) {
  const Evaluation result =
      Evaluator(world_, *backend_, *model_, *dataset_, rules_, 1, DataPlace::automatic, TestTimeAugmentation::plain)
          .evaluate();
  EXPECT_EQ(result.samples, samples);
  EXPECT_EQ(std::accumulate(result.confusion.begin(), result.confusion.end(), std::int64_t{0}), samples);
  ASSERT_EQ(result.predictions.size(), static_cast<std::size_t>(samples));
  std::int64_t correct = 0;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    correct += result.predictions[static_cast<std::size_t>(sample)] == dataset_->label(sample);
  }
  EXPECT_EQ(result.correct(), correct);
  EXPECT_EQ(result.label_count(3), 104);
  EXPECT_EQ(result.label_count(9), 103);
  EXPECT_GE(result.in_top5, result.correct());
  EXPECT_LT(result.in_top5, samples);
}

TEST_F(EvaluationTest, a_second_evaluation_starts_from_the_first_sample_again) {
  Evaluator evaluator(world_, *backend_, *model_, *dataset_, rules_, 1, DataPlace::automatic,
                      TestTimeAugmentation::plain);
  const Evaluation first = evaluator.evaluate();
  EXPECT_EQ(evaluator.evaluate().predictions, first.predictions);
}

TEST_F(EvaluationTest, equal_logits_predict_the_lowest_class_at_the_loss_of_a_guess) {
  for (Parameter& parameter : model_->store.parameters()) {
    backend_->device().write(std::vector<float>(static_cast<std::size_t>(parameter.stored)), parameter.value);
  }
  const Evaluation result =
      Evaluator(world_, *backend_, *model_, *dataset_, rules_, 1, DataPlace::automatic, TestTimeAugmentation::plain)
          .evaluate();
  EXPECT_EQ(result.correct(), result.label_count(0));
  EXPECT_EQ(result.in_top5, 5 * 104);
  EXPECT_NEAR(result.loss(), std::log(10.0), 1e-6);
}

TEST_F(EvaluationTest, with_mirror_images_the_mean_of_both_logits_counts) {
  Device& device = backend_->device();
  const std::int64_t batch_samples = evaluation_batch(dataset_->samples(), rules_.size);
  const std::unique_ptr<Loader> loader =
      backend_->load_onto(evaluation_source(*dataset_, rules_, batch_samples, 0, 1, 1), DataPlace::host);
  const Batch& batch = loader->next();
  const Shape shape = batch.images.shape();
  std::vector<float> pixels(static_cast<std::size_t>(shape.count()));
  device.read(batch.images, pixels);
  std::vector<float> mirrored(pixels.size());
  const auto width = static_cast<std::size_t>(shape[2]);
  const auto channels = static_cast<std::size_t>(shape[3]);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::size_t column = i / channels % width;
    mirrored[i + (width - 1 - column) * channels - column * channels] = pixels[i];
  }
  std::vector<std::int32_t> expected;
  std::vector<std::int32_t> plain;
  std::vector<float> logits(static_cast<std::size_t>(10 * batch_samples));
  device.read(model_->network->forward(batch.images, Mode::evaluate), logits);
  device.write(mirrored, batch.images);
  std::vector<float> others(logits.size());
  device.read(model_->network->forward(batch.images, Mode::evaluate), others);
  const auto largest = [](const auto first) {
    return static_cast<std::int32_t>(std::max_element(first, first + 10) - first);
  };
  for (std::size_t sample = 0; sample < static_cast<std::size_t>(batch_samples); ++sample) {
    plain.push_back(largest(logits.begin() + static_cast<std::ptrdiff_t>(10 * sample)));
    for (std::size_t i = 10 * sample; i < 10 * sample + 10; ++i) logits[i] = (logits[i] + others[i]) / 2;
    expected.push_back(largest(logits.begin() + static_cast<std::ptrdiff_t>(10 * sample)));
  }
  EXPECT_NE(expected, plain);
  std::vector<std::int32_t> found =
      Evaluator(world_, *backend_, *model_, *dataset_, rules_, 1, DataPlace::automatic, TestTimeAugmentation::flip)
          .evaluate()
          .predictions;
  found.resize(expected.size());
  EXPECT_EQ(found, expected);
}

// "top-5 100.00 %" of three classes.
TEST(EvaluationTextTest, has_top_5_only_if_there_are_more_classes) {
  for (const std::int64_t classes : {3, 5, 6}) {
    Evaluation evaluation;
    evaluation.classes = classes;
    evaluation.confusion.resize(static_cast<std::size_t>(classes * classes));
    const std::vector<std::string> names(static_cast<std::size_t>(classes), "c");
    EXPECT_EQ(evaluation_text(evaluation, names).find("top-5") != std::string::npos, classes == 6) << classes;
  }
}

TEST(EvaluationBatchTest, is_small_where_images_are_large_or_few) {
  EXPECT_EQ(evaluation_batch(10'000, {32, 32}), 200);
  EXPECT_EQ(evaluation_batch(50'000, {224, 224}), 32);
  EXPECT_EQ(evaluation_batch(50'000, {4096, 4096}), 1);
  EXPECT_EQ(evaluation_batch(18, {64, 64}), 2);
  EXPECT_EQ(evaluation_batch(1, {64, 64}), 1);
}

}  // namespace lockstep::evaluation_test
