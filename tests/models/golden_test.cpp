// Whole models against golden values that PyTorch wrote in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "models/counter_values.hpp"
#include "models/counter_weights.hpp"
#include "models/golden_file.hpp"
#include "models/net_values.hpp"
#include "models/test_net.hpp"
#include "optim/optimizer.hpp"
#include "support/device/devices.hpp"

namespace lockstep::test {
namespace {

constexpr std::uint64_t image_stream = 1000;  // of counter_uniform, as in make_golden.py

std::vector<float> floats(const Values& values) { return {values.begin(), values.end()}; }

double worst_error(const NamedValues& values, const NamedValues& expected) {
  double worst = 0.0;
  for (const auto& [name, one] : expected) worst = std::max(worst, largest_error(values.at(name), one));
  return worst;
}

// Parameters and running statistics.
NamedValues state(const TestNet& net) {
  NamedValues state;
  for (const auto& entry : net.store.entries()) state[entry.name] = doubles(entry.values);
  return state;
}

// Running statistics alone.
NamedValues running(const TestNet& net) {
  const NamedValues all = state(net);
  NamedValues running;
  for (const Statistic& statistic : net.store.statistics()) running[statistic.name] = all.at(statistic.name);
  return running;
}

NamedValues stored(const GoldenFile& golden, const std::string& group, const NamedValues& like) {
  NamedValues values;
  for (const auto& [name, unused] : like) values[name] = golden.values(group + "/" + name);
  return values;
}

std::unique_ptr<Optimizer> make_sgd(TestNet& net, const GoldenFile& golden) {
  return make_optimizer(net.store, {.momentum = static_cast<float>(golden.attribute("momentum")),
                                    .weight_decay = static_cast<float>(golden.attribute("weight_decay"))});
}

// What Lockstep computes on the golden file's batch.
struct Trained {
  Values logits;
  double loss = 0.0;
  NamedValues gradients;  // of the first step
  NamedValues running;    // after the first step
  NamedValues updated;    // after all steps
};

int steps_in(const GoldenFile& golden) { return static_cast<int>(golden.attribute("steps")); }

Trained train(TestNet& net, const GoldenFile& golden, const Shape& shape, std::span<const float> pixels, int steps) {
  const Tensor images = make_images(*net.device, shape, pixels);
  const Tensor labels = make_labels(*net.device, floats(golden.values("labels")));
  const std::unique_ptr<Optimizer> sgd = make_sgd(net, golden);
  const StepRecord record(*net.device, ParameterStore::metric_slot_count);
  net.device->write(std::vector<float>{static_cast<float>(golden.attribute("learning_rate"))},
                    record.at(step_learning_rate));

  Trained trained;
  for (int step = 0; step < steps; ++step) {
    RecordingSink sink;
    const Tensor logits = net.pass(images, labels, sink);
    if (step == 0) {
      trained.logits = doubles(read(*net.device, logits));
      trained.loss = net.loss();
      trained.gradients = gradients(net);
    }
    sgd->step(record);
    net.store.update_running_statistics(record);
    if (step == 0) trained.running = running(net);
  }
  trained.updated = state(net);
  return trained;
}

// Trains a net whose golden file holds weights, images and all results in full.
Trained train_full(TestNet& net, const GoldenFile& golden, int steps) {
  std::vector<ParameterStore::Entry> entries = net.store.entries();
  for (ParameterStore::Entry& entry : entries) {
    if (!is_statistic(entry)) entry.values = floats(golden.values("weights/" + entry.name));
  }
  net.store.assign(entries);
  const std::vector<std::int64_t> dims = golden.dims("images");
  return train(net, golden, {dims[0], dims[1], dims[2], dims[3]}, floats(golden.values("images")), steps);
}

// The norm of each tensor and 16 of its elements, row by row, as make_golden.py keeps them.
Values probes(const NamedValues& tensors) {
  Values rows;
  for (const auto& [name, values] : tensors) {
    double square = 0.0;
    for (const double value : values) square += value * value;
    rows.push_back(std::sqrt(square));
    for (std::size_t i = 0; i < 16; ++i) rows.push_back(values[i * values.size() / 16]);
  }
  return rows;
}

double relative_l2(const Values& values, const Values& expected) {
  return compare({{"", values}}, {{"", expected}}).relative_l2;
}

struct FullCase {
  std::string device;
  std::string file;
  ModelOptions model;
  double gradient_error;  // per tensor
  double updated_error;
};

void PrintTo(const FullCase& c, std::ostream* stream) { *stream << c.device << "_" << c.file; }

class GoldenTest : public ::testing::TestWithParam<FullCase> {
 protected:
  static TestNet net(DType precision) {
    const std::string& name = GetParam().device;
    if (name == "cpu") return {GetParam().model, open_test_device(precision)};
    if (name == "cuda") return {GetParam().model, open_gpu({.precision = precision})};
    return {GetParam().model, open_hosted_cuda_device({.precision = precision})};
  }
  // The whole net in half precision, one step: the loss within a share of itself, and where the gradients point.
  static void expect_near(DType precision, double loss_error, double least_cosine) {
    const GoldenFile golden(golden_path(GetParam().file));
    TestNet half = net(precision);

    const Trained trained = train_full(half, golden, 1);

    EXPECT_NEAR(trained.loss, golden.attribute("loss"), loss_error * golden.attribute("loss"));
    const double cosine = compare(trained.gradients, stored(golden, "gradients", trained.gradients)).cosine;
    EXPECT_GE(cosine, least_cosine);
    RecordProperty("cosine", fmt::format("{}", cosine));
  }
};

TEST_P(GoldenTest, fp32_agrees_with_pytorch_over_three_steps) {
  const GoldenFile golden(golden_path(GetParam().file));
  TestNet full = net(DType::f32);

  const Trained trained = train_full(full, golden, steps_in(golden));

  EXPECT_LE(largest_error(trained.logits, golden.values("logits")), 1e-4);
  EXPECT_NEAR(trained.loss, golden.attribute("loss"), 1e-4);
  const NamedValues expected_gradients = stored(golden, "gradients", trained.gradients);
  EXPECT_LE(worst_error(trained.gradients, expected_gradients), GetParam().gradient_error);
  EXPECT_LE(compare(trained.gradients, expected_gradients).relative_l2, 0.1);
  EXPECT_LE(worst_error(trained.running, stored(golden, "running", trained.running)), 1e-4);
  EXPECT_LE(worst_error(trained.updated, stored(golden, "updated", trained.updated)), GetParam().updated_error);
  RecordProperty("gradient_error", fmt::format("{}", worst_error(trained.gradients, expected_gradients)));
  RecordProperty("total_gradient_error", fmt::format("{}", compare(trained.gradients, expected_gradients).relative_l2));
}

TEST_P(GoldenTest, bf16_stays_near_pytorch) { expect_near(DType::bf16, 2e-2, 0.95); }

TEST_P(GoldenTest, fp16_stays_near_pytorch) {
  if (GetParam().device == "cpu") GTEST_SKIP() << "the CPU does not compute in fp16";
  expect_near(DType::f16, 5e-3, 0.98);
}

ModelOptions pictures(const std::string& name, std::int64_t pixels, std::int64_t width_divisor = 1) {
  return {.name = name, .sample = {pixels, pixels, 3}, .classes = 10, .width_divisor = width_divisor};
}

std::vector<FullCase> full_cases() {
  const ModelOptions lenet = pictures("lenet", 32);
  const ModelOptions resnet20 = pictures("resnet20", 32);
  // ReLU masks that flip in fp32 make single gradients of a deep net uncertain; Winograd, which the CPU and cuDNN use,
  // flips more of them.
  const ModelOptions resnet50 = pictures("resnet50", 72, 8);
  std::vector<FullCase> cases{{"cpu", "lenet", lenet, 1e-4, 1e-5},
                              {"cpu", "resnet20", resnet20, 3e-2, 1e-4},
                              {"cpu", "resnet50_narrow", resnet50, 0.1, 1e-2},
                              {"cuda_on_host", "lenet", lenet, 1e-4, 1e-5},
                              {"cuda_on_host", "resnet20", resnet20, 1e-3, 1e-4}};
  if (visible_gpus().empty()) return cases;
  cases.push_back({"cuda", "lenet", lenet, 1e-4, 1e-5});
  cases.push_back({"cuda", "resnet20", resnet20, 3e-2, 1e-4});
  cases.push_back({"cuda", "resnet50_narrow", resnet50, 0.1, 1e-2});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(, GoldenTest, ::testing::ValuesIn(full_cases()),
                         [](const auto& one) { return one.param.device + "_" + one.param.file; });

class GoldenProbesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenProbesTest, the_real_resnet50_agrees_with_pytorch_over_three_steps) {
  const GoldenFile golden(golden_path(GetParam()));
  TestNet net({.name = GetParam(), .sample = {72, 72, 3}, .classes = 1000});
  set_counter_weights(net.store, "bn3.weight");

  const Shape shape{4, 72, 72, 3};
  const Trained trained = train(net, golden, shape, counter_uniform(image_stream, shape.count()), steps_in(golden));

  EXPECT_LE(largest_error(trained.logits, golden.values("logits")), 1e-4);
  EXPECT_NEAR(trained.loss, golden.attribute("loss"), 1e-4);
  EXPECT_LE(relative_l2(probes(trained.gradients), golden.values("gradients")), 0.1);
  EXPECT_LE(relative_l2(probes(trained.updated), golden.values("updated")), 1e-2);
}

INSTANTIATE_TEST_SUITE_P(, GoldenProbesTest, ::testing::Values("resnet50", "resnet50-blur"),
                         [](const auto& one) { return one.param == "resnet50" ? "plain" : "blurred"; });

}  // namespace
}  // namespace lockstep::test
