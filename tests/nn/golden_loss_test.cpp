// The loss of mixed samples against PyTorch's, in float64: tests/golden/losses.h5.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "models/counter_values.hpp"
#include "models/golden_file.hpp"
#include "nn/loss.hpp"
#include "support/device/devices.hpp"

namespace lockstep::test {
namespace {

class GoldenLossTest : public ::testing::TestWithParam<TestDevice> {
 protected:
  static std::vector<float> floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }
  Tensor tensor(const std::vector<float>& values, const Shape& shape, DType dtype) {
    Tensor made = device_->make(shape, dtype, Layout::plain);
    device_->write(values, made);
    return made;
  }
  std::vector<float> contents(const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape().count()));
    device_->read(tensor, values);
    return values;
  }

  std::shared_ptr<Device> device_ = GetParam().open({.threads = 2});
  GoldenFile golden_{golden_path("losses")};
};

TEST_P(GoldenLossTest, of_two_labels_is_pytorchs_against_probabilities) {
  const std::vector<double> gradients = golden_.values("/gradients");
  const std::vector<double> losses = golden_.values("/losses");
  const std::vector<double> labels = golden_.values("/labels");
  const std::vector<double> others = golden_.values("/others");
  const std::vector<double> shares = golden_.values("/shares");
  const std::vector<std::int64_t> dims = golden_.dims("/gradients");
  const std::int64_t samples = dims.at(0);
  const std::int64_t classes = dims.at(1);
  std::vector<float> logits = counter_uniform(0, samples * classes);
  for (float& logit : logits) logit *= 4;
  const Targets targets{tensor(floats(labels), {samples}, DType::i32), tensor(floats(others), {samples}, DType::i32),
                        tensor(floats(shares), {samples}, DType::f32)};
  const LossSums sums{device_->make({1}, DType::f32, Layout::plain), device_->make({1}, DType::f32, Layout::plain)};
  const LossOptions options{.label_smoothing = static_cast<float>(golden_.attribute("label_smoothing"))};
  const std::vector<float> found = contents(softmax_cross_entropy(
      *device_, tensor(logits, {samples, classes}, DType::f32), targets, options, sums, Accumulate::overwrite));
  for (std::size_t i = 0; i < gradients.size(); ++i) ASSERT_NEAR(found[i], gradients[i], 2e-6) << i;
  EXPECT_NEAR(contents(sums.loss)[0], std::accumulate(losses.begin(), losses.end(), 0.0), 2e-5);
  // Right is what has the larger share; of equal ones the first.
  int correct = 0;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const auto row = logits.begin() + sample * classes;
    const auto at = static_cast<std::size_t>(sample);
    const double major = shares[at] >= 0.5 ? labels[at] : others[at];
    correct += static_cast<double>(std::max_element(row, row + classes) - row) == major ? 1 : 0;
  }
  EXPECT_EQ(contents(sums.correct)[0], correct);
}

TEST_P(GoldenLossTest, the_label_of_the_larger_share_is_the_answer) {
  const Tensor logits = tensor({5, 0, 0, 5, 0, 0, 5, 0, 0, 5, 0, 0}, {4, 3}, DType::f32);
  const LossSums sums{device_->make({1}, DType::f32, Layout::plain), device_->make({1}, DType::f32, Layout::plain)};
  const auto correct = [&](const std::vector<float>& labels, const std::vector<float>& others,
                           const std::vector<float>& shares) {
    const Targets targets{tensor(labels, {4}, DType::i32), tensor(others, {4}, DType::i32),
                          tensor(shares, {4}, DType::f32)};
    softmax_cross_entropy(*device_, logits, targets, {}, sums, Accumulate::overwrite);
    return contents(sums.correct)[0];
  };
  EXPECT_EQ(correct({0, 0, 1, 1}, {1, 1, 0, 0}, {0.75, 0.25, 0.25, 0.75}), 2);
  EXPECT_EQ(correct({0, 1, 0, -1}, {1, 0, 0, -1}, {0.5, 0.5, 0.3F, 1}), 2);
}

INSTANTIATE_TEST_SUITE_P(, GoldenLossTest, ::testing::ValuesIn(test_devices()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lockstep::test
