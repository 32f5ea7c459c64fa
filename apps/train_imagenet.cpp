// Trains an image classifier on photographs of all sizes, data-parallel over its ranks. Its defaults are for ImageNet.
//
//   make_shards images --source imagenet --output data/imagenet
//   mpirun -n 8 train_imagenet --data data/imagenet --output runs/rn50
#include "launch/training_program.hpp"

using namespace lockstep;

namespace {

// ResNet-50 in 90 epochs. The learning rate and its linear scaling with the batch are those of Goyal et al. 2017. The
// cosine schedule, label smoothing, and no weight decay for norms and biases are those of He et al. 2019 ("Bag of
// tricks"). There is no warmup: the usual five epochs are for larger batches, and longer than some trainings.
Settings imagenet_settings() {
  Settings settings;
  Recipe& recipe = settings.recipe;
  recipe.model = "resnet50";
  recipe.epochs = {90, ChosenBy::program};
  recipe.batch.global_batch = {256, ChosenBy::program};
  recipe.learning_rate.rate = 0.1;
  recipe.learning_rate.base_batch = 256;
  recipe.learning_rate.schedule = Schedule::cosine;
  recipe.optimizer.momentum = 0.9F;
  recipe.optimizer.momentum_kind = Momentum::classic;
  recipe.optimizer.weight_decay = 1e-4F;
  recipe.optimizer.decay_scope = DecayScope::weights_only;
  recipe.label_smoothing = 0.1F;
  recipe.images.side = 224;
  recipe.images.augmentation = Augmentation::resized_crop_and_flip;
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  return run_training(argc, argv,
                      {"Trains an image classifier on photographs of all sizes, on one or many ranks. Its defaults are "
                       "for ImageNet.",
                       "  mpirun -n 8 train_imagenet --data data/imagenet --output runs/rn50\n"
                       "  train_imagenet --data data/mine --model resnet18 --output runs/mine"},
                      imagenet_settings());
}
