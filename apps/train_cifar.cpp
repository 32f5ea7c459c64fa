// Trains an image classifier on shards made by make_shards, data-parallel over its ranks. Its defaults are for
// CIFAR-10.
//
//   mpirun -n 2 train_cifar --data data/cifar10 --output runs/cifar10
//   train_cifar --data data/cifar10 --gpus all
#include "launch/training_program.hpp"

using namespace lockstep;

namespace {

// ResNet-20 on CIFAR-10 in ten epochs: the 1cycle schedule (Smith and Topin 2018), with the weight decay and the
// augmentation of He et al. 2015.
Settings cifar_settings() {
  Settings settings;
  Recipe& recipe = settings.recipe;
  recipe.model = "resnet20";
  recipe.epochs = {10, ChosenBy::program};
  recipe.batch.global_batch = {128, ChosenBy::program};
  recipe.learning_rate.rate = 0.2;
  recipe.learning_rate.base_batch = 128;
  recipe.learning_rate.schedule = Schedule::one_cycle;
  recipe.optimizer.momentum = 0.9F;
  recipe.optimizer.momentum_kind = Momentum::classic;
  recipe.optimizer.weight_decay = 5e-4F;
  recipe.label_smoothing = 0;
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  return run_training(argc, argv,
                      {"Trains an image classifier on one or many ranks. Its defaults are for CIFAR-10.",
                       "  train_cifar --data data/cifar10 --output runs/r20\n"
                       "  mpirun -n 4 train_cifar --data data/cifar10 --epochs 30 --output runs/longer"},
                      cifar_settings());
}
