#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/device/naive_ops.hpp"
#include "support/device/ops_fixture.hpp"

namespace lockstep {
namespace {

class LossTest : public OpsTest {
 protected:
  static constexpr double scale = 0.125;

  Tensor labels(const std::vector<std::int32_t>& contents) {
    const Tensor result = device_->make(Shape{static_cast<std::int64_t>(contents.size())}, DType::i32, Layout::plain);
    device_->write(std::vector<float>(contents.begin(), contents.end()), result);
    return result;
  }
  static double correct_answers(const Values& logits, const std::vector<std::int32_t>& labels) {
    const std::size_t classes = logits.size() / labels.size();
    double correct = 0;
    for (std::size_t sample = 0; sample < labels.size(); ++sample) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(sample * classes);
      const auto best = std::max_element(row, row + static_cast<std::ptrdiff_t>(classes)) - row;
      correct += best == labels[sample] ? 1 : 0;
    }
    return correct;
  }
  static double sum(const Values& values) {
    double total = 0;
    for (const double value : values) total += value;
    return total;
  }
};

TEST_P(LossTest, sums_loss_and_correct_answers_and_finds_the_gradient) {
  const std::vector<std::int32_t> label_values{3, 0, -1, 9, 3};
  const Shape shape{5, 10};
  Values logits = values(50, 1);
  logits[13] = logits[17] = 9;  // a tie in sample 1, label 0
  logits[3] = 5;                // sample 0 is right
  logits[49] = logits[43] = 8;  // a tie in sample 4: the lowest class, its label, counts
  for (const double smoothing : {0.0, 0.1}) {
    const LossSums sums{vector(1), vector(1)};
    const Tensor d_logits = make(shape, Layout::plain);
    for (const Accumulate accumulate : {Accumulate::overwrite, Accumulate::add}) {
      ops_.softmax_cross_entropy(tensor(shape, logits, Layout::plain), labels(label_values),
                                 static_cast<float>(smoothing), static_cast<float>(scale), {d_logits, {}}, sums,
                                 accumulate);
    }
    const Values losses = naive::cross_entropy(logits, label_values, smoothing);
    expect_near(sums.loss, {2 * scale * sum(losses)}, "loss");
    EXPECT_EQ(contents(sums.correct), Values{4});
    const auto of_logits = [&](const Values& l) { return naive::cross_entropy(l, label_values, smoothing); };
    expect_near(d_logits, naive::central_differences(of_logits, logits, Values(5, scale)), "d_logits");
    for (std::size_t c = 20; c < 30; ++c) EXPECT_EQ(contents(d_logits)[c], 0) << "of the sample that does not count";
  }
}

TEST_P(LossTest, evaluates_without_a_gradient) {
  const LossSums sums{vector(1), vector(1)};
  ops_.softmax_cross_entropy(tensor(Shape{1, 2}, {1, 2}, Layout::plain), labels({0}), 0, 1, {}, sums,
                             Accumulate::overwrite);
  expect_near(sums.loss, naive::cross_entropy({1, 2}, {0}, 0), "loss");
  EXPECT_EQ(contents(sums.correct), Values{0});
}

TEST_P(LossTest, a_loss_scale_multiplies_the_gradient_alone) {
  const Shape shape{2, 3};
  const Tensor logits = tensor(shape, values(6, 1), Layout::plain);
  const LossSums plain{vector(1), vector(1)};
  const LossSums scaled{vector(1), vector(1)};
  const Tensor d_plain = make(shape, Layout::plain);
  const Tensor d_scaled = make(shape, Layout::plain);
  ops_.softmax_cross_entropy(logits, labels({2, 0}), 0.1F, 0.5F, {d_plain, {}}, plain, Accumulate::overwrite);
  ops_.softmax_cross_entropy(logits, labels({2, 0}), 0.1F, 0.5F, {d_scaled, vector(Values{1024})}, scaled,
                             Accumulate::overwrite);
  EXPECT_EQ(contents(scaled.loss), contents(plain.loss));
  Values expected = contents(d_plain);
  for (double& value : expected) value *= 1024;
  EXPECT_EQ(contents(d_scaled), expected);
}

TEST_P(LossTest, takes_any_number_of_classes) {
  for (const std::int64_t classes : {1, 2, 31, 32, 33, 100, 1000}) {
    const Shape shape{3, classes};
    const auto last = static_cast<std::int32_t>(classes - 1);
    Values logits = values(shape.count(), 1);
    logits[static_cast<std::size_t>(last)] = 3;                // sample 0 is right
    logits[static_cast<std::size_t>(2 * classes + last)] = 3;  // sample 2: a tie unless there is one class only
    logits[static_cast<std::size_t>(2 * classes)] = 3;
    const std::vector<std::int32_t> label_values{last, last / 2, last};
    const LossSums sums{vector(1), vector(1)};
    const Tensor d_logits = make(shape, Layout::plain);
    ops_.softmax_cross_entropy(tensor(shape, logits, Layout::plain), labels(label_values), 0.1F, 1, {d_logits, {}},
                               sums, Accumulate::overwrite);
    expect_near(sums.loss, {sum(naive::cross_entropy(logits, label_values, 0.1))}, "loss");
    EXPECT_EQ(contents(sums.correct)[0], correct_answers(logits, label_values));
    if (classes == 1 || classes > 33) continue;  // differences are all rounding; or take long
    const auto of_logits = [&](const Values& l) { return naive::cross_entropy(l, label_values, 0.1); };
    expect_near(d_logits, naive::central_differences(of_logits, logits, Values(3, 1)), "d_logits");
  }
}

TEST_P(LossTest, large_logits_do_not_overflow) {
  const LossSums sums{vector(1), vector(1)};
  const Tensor d_logits = make(Shape{1, 3}, Layout::plain);
  ops_.softmax_cross_entropy(tensor(Shape{1, 3}, {1e4, 0, -1e4}, Layout::plain), labels({1}), 0, 1, {d_logits, {}},
                             sums, Accumulate::overwrite);
  expect_near(sums.loss, {1e4}, "loss");
  expect_near(d_logits, {1, -1, 0}, "d_logits");
}

INSTANTIATE_TEST_SUITE_P(, LossTest, every_device_and_precision(), case_name);

}  // namespace
}  // namespace lockstep
