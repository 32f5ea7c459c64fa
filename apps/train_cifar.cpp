// Trains an image classifier on shards made by make_shards, data-parallel over the ranks it is started on.
//
//   mpirun -n 2 train_cifar --data data/cifar10 --output runs/cifar10
//   train_cifar --data data/cifar10 --gpus all
#include "launch/field_options.hpp"
#include "launch/gpu_ranks.hpp"
#include "launch/run.hpp"
#include "train/trainer.hpp"

using namespace lockstep;

namespace {

// ResNet-20 on CIFAR-10 in ten epochs: one cycle of the learning rate (Smith and Topin 2018) with the weight decay and
// augmentation of He et al. 2015.
Settings cifar_settings() {
  Settings settings;
  Recipe& recipe = settings.recipe;
  recipe.model = "resnet20";
  recipe.epochs = 10;
  recipe.batch.global_batch = 128;
  recipe.learning_rate.rate = 0.2;
  recipe.learning_rate.base_batch = 128;
  recipe.learning_rate.schedule = Schedule::one_cycle;
  recipe.optimizer.momentum = 0.9F;
  recipe.optimizer.momentum_kind = Momentum::classic;
  recipe.optimizer.weight_decay = 5e-4F;
  recipe.label_smoothing = 0;
  return settings;
}

struct TrainOptions {
  static constexpr Stopping stopping = Stopping::in_order;
  Settings settings = cifar_settings();
  std::string gpus;

  void declare(CLI::App& app) {
    app.description("Trains an image classifier on one or many ranks.");
    declare_training(app, settings);
    declare_gpus(app, gpus);
  }
  DeviceOptions device_options() const { return lockstep::device_options(settings.recipe, settings.run); }
  double hang_timeout_seconds() const { return settings.run.hang_timeout_seconds; }
};

}  // namespace

int main(int argc, char** argv) {
  if (const std::optional<int> code = spread_over_gpus(argc, argv)) return *code;
  return run<TrainOptions>(argc, argv, [](Session& session, const TrainOptions& options) {
    return ending_of(train(session, options.settings.recipe, options.settings.run));
  });
}
