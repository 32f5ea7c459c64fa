// An optimizer's state on its way through a checkpoint, whatever arrays it keeps.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.hpp"
#include "optim/optimizer.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/samples/small_checkpoint.hpp"

namespace lockstep::optimizer_checkpoint_test {

// Two arrays and a step of its own, on a CPU's memory.
class Moments final : public Optimizer {
 public:
  explicit Moments(ParameterStore& store)
      : store_(store),
        mean_(store.device().make_persistent(store.gradient_count(), DType::f32)),
        square_(store.device().make_persistent(store.gradient_count(), DType::f32)) {}

  void step(const StepRecord& record) override {
    const float rate = *record.at(step_learning_rate).as<float>();
    const float* const gradients = store_.gradients().as<float>();
    float* const values = store_.values().as<float>();
    for (std::int64_t i = 0; i < store_.gradient_count(); ++i) {
      float& mean = mean_.as<float>()[i];
      float& square = square_.as<float>()[i];
      mean = 0.5F * mean + gradients[i];
      square = 0.75F * square + gradients[i] * gradients[i];
      values[i] -= rate * mean / (square + 1.0F);
    }
  }
  const std::vector<StateArray>& state() const override { return state_; }

 private:
  ParameterStore& store_;
  Tensor mean_;
  Tensor square_;
  std::vector<StateArray> state_{{"mean", mean_}, {"square", square_}};
};

class OptimizerCheckpointTest : public testing::Test {
 protected:
  // A model that has learnt nothing yet, its gradients no two alike.
  struct Trained {
    Trained() {
      store.add("conv.weight", {3, 2, 1, 1}, ParameterKind::conv_weight, ParameterRole::weight, {});
      store.add("fc.bias", {4}, ParameterKind::channel_vector, ParameterRole::bias, {});
      store.allocate(device->make_persistent(store.gradient_buffer_count(), DType::f32));
      store.assign_to(store.gradients(),
                      std::vector<ParameterStore::Entry>{{"conv.weight", {3, 2, 1, 1}, {1, 2, 3, 4, 5, 6}},
                                                         {"fc.bias", {4}, {-1, -2, -3, -4}}});
      device->write(std::vector<float>{0.25F}, record.at(step_learning_rate));
    }
    void step(Optimizer& optimizer, int steps) {
      for (int index = 0; index < steps; ++index) optimizer.step(record);
    }

    std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = 1});
    ParameterStore store{*device};
    StepRecord record{*device, ParameterStore::metric_slot_count};
  };

  static Checkpoint through_a_file(const Trained& trained, const Optimizer& optimizer) {
    Checkpoint written = small_checkpoint();
    written.model.entries = trained.store.entries();
    written.optimizer = state_of(trained.store, optimizer);
    const std::vector<std::byte> image = checkpoint_image(written);
    std::string bytes(reinterpret_cast<const char*>(image.data()), image.size());
    return parse_checkpoint("step.h5", bytes);
  }
};

TEST_F(OptimizerCheckpointTest, an_optimizer_of_two_arrays_goes_on_from_both) {
  Trained trained;
  Moments optimizer(trained.store);
  trained.step(optimizer, 3);
  const Checkpoint read = through_a_file(trained, optimizer);

  Trained resumed;
  Moments later(resumed.store);
  resumed.store.assign(read.model.entries);
  assign_state(resumed.store, later, read.optimizer);
  EXPECT_EQ(resumed.store.weights_hash(), trained.store.weights_hash());
  trained.step(optimizer, 2);
  resumed.step(later, 2);
  EXPECT_EQ(resumed.store.weights_hash(), trained.store.weights_hash());
}

TEST_F(OptimizerCheckpointTest, one_that_keeps_nothing_leaves_nothing) {
  class Still final : public Optimizer {
    void step(const StepRecord&) override {}
    const std::vector<StateArray>& state() const override { return none_; }
    std::vector<StateArray> none_;
  } still;
  Trained trained;
  const Checkpoint read = through_a_file(trained, still);
  EXPECT_TRUE(read.optimizer.empty());
  assign_state(trained.store, still, read.optimizer);
}

TEST_F(OptimizerCheckpointTest, a_checkpoint_of_another_optimizer_is_refused_by_what_each_keeps) {
  Trained trained;
  const Moments moments(trained.store);
  const std::unique_ptr<Optimizer> sgd = make_optimizer(trained.store, {});
  const auto refusal = [&](const Optimizer& from, const Optimizer& to) {
    const Checkpoint read = through_a_file(trained, from);
    return message_of(Failure::usage, [&] { require_same_arrays(to, read.optimizer); });
  };
  expect_message(refusal(moments, *sgd), {"mean", "square"});
  EXPECT_NE(refusal(*sgd, moments), "no error");
  // Names in a file do not steer the terminal.
  const std::string message = message_of(Failure::usage, [&] { require_same_arrays(*sgd, {{"mean\x1b[2J", {}}}); });
  EXPECT_NE(message.find("'mean\\x1b[2J'"), std::string::npos) << message;
}

}  // namespace lockstep::optimizer_checkpoint_test
