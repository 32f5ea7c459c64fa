#include "train/evaluation/evaluation.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "nn/initialize.hpp"
#include "support/messages.hpp"
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
  std::int64_t counted = 0;
  for (const auto& [pair, count] : result.confusion) counted += count;
  EXPECT_EQ(counted, samples);
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

// Logits of more than 2 GiB, in one message, failed after all the work.
TEST_F(EvaluationTest, logits_are_the_same_in_messages_of_any_size) {
  Evaluator evaluator(world_, *backend_, *model_, *dataset_, rules_, 1, DataPlace::automatic,
                      TestTimeAugmentation::plain);
  std::vector<float> together;
  evaluator.evaluate(together);
  const std::size_t two_batches =
      std::size_t{2} * 10 * sizeof(float) * static_cast<std::size_t>(evaluator.batch() * world_.size());
  for (const std::size_t message_bytes : {std::size_t{1}, two_batches}) {
    std::vector<float> parts;
    evaluator.evaluate(parts, message_bytes);
    EXPECT_EQ(parts, together);
  }
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

// Shows image pixel (row + shift, column + shift), reflected at the edges, then mirrored if it says so. Pixels [n, h,
// w, c].
std::vector<float> seen(const std::vector<float>& pixels, const Shape& shape, std::int64_t shift, bool mirrored) {
  const auto at = [](std::int64_t i, std::int64_t count) { return i < 0 ? -i : i >= count ? 2 * count - 2 - i : i; };
  std::vector<float> shown;
  for (std::int64_t row = 0; row < shape[0] * shape[1]; ++row) {
    const std::int64_t from_row = row / shape[1] * shape[1] + at(row % shape[1] + shift, shape[1]);
    for (std::int64_t column = 0; column < shape[2]; ++column) {
      const std::int64_t from = at((mirrored ? shape[2] - 1 - column : column) + shift, shape[2]);
      for (std::int64_t c = 0; c < shape[3]; ++c) {
        shown.push_back(pixels[static_cast<std::size_t>((from_row * shape[2] + from) * shape[3] + c)]);
      }
    }
  }
  return shown;
}

// Logits [n, 10] of the first batch, and what an evaluator makes of them.
class TestTimeAugmentationTest : public EvaluationTest {
 protected:
  TestTimeAugmentationTest() { device_.read(batch_.images, pixels_); }

  std::vector<float> logits_of(std::int64_t shift, bool mirrored) {
    device_.write(seen(pixels_, batch_.images.shape(), shift, mirrored), batch_.images);
    std::vector<float> logits(static_cast<std::size_t>(10 * batch_samples_));
    device_.read(model_->network->forward(batch_.images, Mode::evaluate), logits);
    return logits;
  }
  Evaluation evaluate(TestTimeAugmentation augmentation, std::vector<float>& logits) {
    return Evaluator(world_, *backend_, *model_, *dataset_, rules_, 1, DataPlace::automatic, augmentation)
        .evaluate(logits);
  }
  // Means of the evaluator are sums of another order.
  void expect_logits(const std::vector<double>& expected, const std::vector<float>& found) {
    if (world_.rank() != 0) return;
    ASSERT_EQ(found.size(), static_cast<std::size_t>(10 * samples));
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-5) << i;
  }

  Device& device_ = backend_->device();
  const std::int64_t batch_samples_ = evaluation_batch(dataset_->samples(), rules_.size);
  const std::unique_ptr<Loader> loader_ =
      backend_->load_onto(evaluation_source(*dataset_, rules_, batch_samples_, 0, 1, 1), DataPlace::host);
  const Batch& batch_ = loader_->next();
  std::vector<float> pixels_ = std::vector<float>(static_cast<std::size_t>(batch_.images.shape().count()));
};

TEST_F(TestTimeAugmentationTest, with_mirror_images_the_mean_of_both_logits_counts) {
  const std::vector<float> own = logits_of(0, false);
  const std::vector<float> mirrored = logits_of(0, true);
  std::vector<double> expected;
  for (std::size_t i = 0; i < own.size(); ++i) expected.push_back((double{own[i]} + double{mirrored[i]}) / 2);
  std::vector<float> found;
  evaluate(TestTimeAugmentation::flip, found);
  expect_logits(expected, found);
}

// infer_mirror_translate of airbench94, in double precision.
TEST_F(TestTimeAugmentationTest, with_shifted_images_these_count_half) {
  std::vector<std::vector<float>> views;
  for (const std::int64_t shift : {0, -1, 1}) {
    for (const bool mirrored : {false, true}) views.push_back(logits_of(shift, mirrored));
  }
  std::vector<double> expected;
  for (std::size_t i = 0; i < views[0].size(); ++i) {
    const auto pair = [&](std::size_t first) { return (double{views[first][i]} + double{views[first + 1][i]}) / 2; };
    expected.push_back(0.5 * pair(0) + 0.5 * (pair(2) + pair(4)) / 2);
  }
  std::vector<float> found;
  evaluate(TestTimeAugmentation::flip_shift, found);
  expect_logits(expected, found);
}

TEST_F(TestTimeAugmentationTest, the_accuracy_without_it_stands_beside_the_result) {
  std::vector<float> logits;
  const Evaluation plain = evaluate(TestTimeAugmentation::plain, logits);
  EXPECT_EQ(plain.plain_correct, plain.correct());
  EXPECT_EQ(plain.plain_accuracy(), std::nullopt);
  EXPECT_EQ(accuracy_text(plain), fmt::format("{:.2f} %", 100 * plain.accuracy()));
  for (const TestTimeAugmentation kind : {TestTimeAugmentation::flip, TestTimeAugmentation::flip_shift}) {
    const Evaluation augmented = evaluate(kind, logits);
    EXPECT_EQ(augmented.augmentation, kind);
    EXPECT_EQ(augmented.plain_accuracy(), plain.accuracy());
    EXPECT_NE(augmented.predictions, plain.predictions);
    EXPECT_EQ(accuracy_text(augmented), fmt::format("{:.2f} % with {} ({:.2f} % without)", 100 * augmented.accuracy(),
                                                    test_augmentation_name(kind), 100 * plain.accuracy()));
  }
}

TEST_F(EvaluationTest, images_of_one_pixel_are_not_shifted) {
  expect_error(Failure::usage, {"--test-augment", "flip-shift"}, [&] {
    Evaluator(world_, *backend_, *model_, *dataset_, {{1, 8}}, 1, DataPlace::automatic,
              TestTimeAugmentation::flip_shift);
  });
}

// "top-5 100.00 %" of three classes.
TEST(EvaluationTextTest, has_top_5_only_if_there_are_more_classes) {
  for (const std::int64_t classes : {3, 5, 6}) {
    Evaluation evaluation;
    evaluation.classes = classes;
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
