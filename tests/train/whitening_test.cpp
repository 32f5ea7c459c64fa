// Whitening filters, against the windows of the images that they were computed from.
#include "train/pretrained/whitening.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "backend/backend.hpp"
#include "base/error.hpp"
#include "dataset/loading/augmented_reader.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/samples/small_data_set.hpp"

namespace lockstep::whitening_test {

TEST(WhiteningTest, filters_are_eigenvectors_and_their_negatives) {
  const std::vector<float> filters = whitening_filters({2, 1, 1, 2}, 2, 1);  // values 3: (1, 1), and 1: (1, -1)
  const float first = filters[0];
  const float second = filters[2];
  EXPECT_NEAR(std::abs(first), std::sqrt(0.5 / 4), 1e-7);
  EXPECT_NEAR(std::abs(second), std::sqrt(0.5 / 2), 1e-7);
  EXPECT_EQ(filters, (std::vector<float>{first, first, second, -second, -first, -first, -second, second}));
}

// A matrix of rank 2 in three dimensions: the last filter is limited by epsilon.
TEST(WhiteningTest, a_direction_without_any_values_is_not_scaled_up_without_limit) {
  const std::vector<float> filters = whitening_filters({1, 1, 0, 1, 1, 0, 0, 0, 5}, 3, 1e-2);
  EXPECT_NEAR(std::abs(filters[2]), 1 / std::sqrt(5 + 1e-2), 1e-6);
  EXPECT_NEAR(std::abs(filters[6]), std::sqrt(0.5) / 0.1, 1e-5);
}

class WhitenedDataTest : public testing::Test {
 protected:
  WhitenedDataTest() : backend_(open_backend({.name = "cpu", .threads = 1})) {
    write_small_data_set(folder_, rules_.size.height, samples);
  }
  ~WhitenedDataTest() override { std::filesystem::remove_all(folder_); }

  static void write_small_data_set(const std::filesystem::path& folder, std::int64_t side, std::int64_t count) {
    lockstep::write_small_data_set(folder, {side, side, 3}, count, 100);
  }
  std::vector<float> filters(Model& model, const Dataset& data) const {
    model.store.allocate(backend_->device().make_persistent(model.store.gradient_buffer_count(), DType::f32));
    whiten(model, data, rules_);
    const Parameter& weight = model.store.parameters().front();
    EXPECT_EQ(weight.name, "whiten.weight");
    std::vector<float> values(static_cast<std::size_t>(weight.count()));
    backend_->device().load(weight.kind, weight.dims, weight.value, values);
    return values;
  }

  static constexpr std::int64_t samples = 150;
  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / "whitening_test";
  const ImageRules rules_{{25, 25}, Augmentation::crop_and_flip};
  std::unique_ptr<Backend> backend_;
};

// By plain loops: the mean products of the filters' results.
TEST_F(WhitenedDataTest, results_are_uncorrelated_and_have_a_mean_square_of_nearly_one) {
  const Dataset data(folder_);
  Model model(backend_->device(), {"airbench", {25, 25, 3}, 10});
  const std::vector<float> weights = filters(model, data);
  const Manifest& manifest = data.manifest();
  const std::int64_t side = rules_.size.width;
  double products[12][12] = {};
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const Picture picture = data.picture(sample);
    for (std::int64_t row = 0; row + 1 < side; ++row) {
      for (std::int64_t column = 0; column + 1 < side; ++column) {
        double results[12] = {};
        for (std::size_t filter = 0; filter < 12; ++filter) {
          for (std::size_t value = 0; value < 12; ++value) {
            const std::size_t channel = value / 4;
            const auto y = row + static_cast<std::int64_t>(value % 4 / 2);
            const auto x = column + static_cast<std::int64_t>(value % 2);
            const double pixel = picture.pixels[static_cast<std::size_t>((y * side + x) * 3) + channel];
            results[filter] += weights[filter * 12 + value] * (pixel / 255 - double{manifest.mean[channel]}) /
                               double{manifest.deviation[channel]};
          }
        }
        for (std::size_t i = 0; i < 12; ++i) {
          for (std::size_t j = 0; j < 12; ++j) products[i][j] += results[i] * results[j];
        }
      }
    }
  }
  const double windows = static_cast<double>(samples * (side - 1) * (side - 1));
  for (std::size_t i = 0; i < 12; ++i) {
    for (std::size_t j = 0; j < 12; ++j) EXPECT_NEAR(products[i][j] / windows, i == j ? 1 : 0, 0.01) << i << ' ' << j;
  }
}

TEST_F(WhitenedDataTest, needs_two_outputs_for_each_value_of_a_window) {
  const std::string message = message_of(Failure::usage, [] { whitened_weight({"resnet18", {32, 32, 3}, 10}); });
  expect_message(message, {"--whiten", "54", "'conv1'", "resnet18", "64"});
  EXPECT_EQ(whitened_weight({"airbench", {32, 32, 1}, 10}), "whiten.weight");
}

}  // namespace lockstep::whitening_test
