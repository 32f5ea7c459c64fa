#include "recipe/recipes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <initializer_list>
#include <ranges>

#include "recipe/fields.hpp"

namespace lockstep {
namespace {

constexpr const char* ffcv = "github.com/libffcv/ffcv-imagenet, rn50_configs and rn18_configs, train_imagenet.py";
constexpr const char* mlperf = "MLPerf Training v3.0, NVIDIA's submissions of ResNet-50 (MXNet)";
constexpr const char* torchvision = "github.com/pytorch/vision, references/classification/train.py, its defaults";
constexpr const char* torchvision_v2 =
    "pytorch.org/blog/how-to-train-state-of-the-art-models-using-torchvision-latest-primitives";
constexpr const char* airbench =
    "github.com/KellerJordan/cifar10-airbench, airbench94.py (Jordan 2024, arXiv 2404.00498)";
constexpr const char* airbench_muon = "github.com/KellerJordan/cifar10-airbench, airbench94_muon.py (Jordan 2024)";
constexpr const char* openpai = "github.com/microsoft/pai, examples/Distributed-example";

// Batches of 512 on each of 8 GPUs, or of 1,024 on one GPU. The rate rises linearly from 1/10,000 of its peak to its
// peak at epoch 2, and then falls linearly to zero. FFCV excludes parameters with "bn" in their names from weight
// decay; here the norms of shortcuts and the biases are excluded too. Images grow as in get_resolution(). Tests crop
// the center 224/256 of a picture, which is the default without --resize.
std::vector<StatedField> ffcv_fields(std::string_view model, std::string_view epochs, std::string_view ramp) {
  const bool is_rn50 = model == "resnet50";
  return {{"model", model},
          {"epochs", epochs},
          {"global-batch", is_rn50 ? "4096" : "1024"},
          {"optimizer", "sgd"},
          {"momentum", "0.9"},
          {"weight-decay", is_rn50 ? "1e-4" : "5e-5"},
          {"no-decay-norm", "true"},
          {"blur-pool", "true"},
          {"label-smoothing", "0.1"},
          {"lr", is_rn50 ? "1.7" : "0.5"},
          {"lr-batch", is_rn50 ? "4096" : "1024"},
          {"schedule", "poly"},
          {"poly-power", "1"},
          {"warmup", "2"},
          {"warmup-from", "1e-4"},
          {"augment", "resized-crop-flip"},
          {"image-size", "192"},
          {"image-size-ramp", ramp},
          {"test-image-size", "256"},
          {"test-augment", "flip"}};
}

// Norms have no scale, and their shifts learn at 64 times the rate. Lookahead's decay is 0.95^5 times the cube of the
// progress. In airbench94 shifts decay too, and the first bias is trained for three epochs only.
std::vector<StatedField> airbench_fields(std::initializer_list<StatedField> others) {
  std::vector<StatedField> fields = {{"optimizer", "sgd"},
                                     {"momentum", "0.85"},
                                     {"nesterov", "true"},
                                     {"no-decay-norm", "true"},
                                     {"label-smoothing", "0.2"},
                                     {"lr-batch", "1024"},
                                     {"lr-scale", "*.norm?.weight=0 *.norm?.bias=64"},
                                     {"schedule", "poly"},
                                     {"poly-power", "1"},
                                     {"warmup-from", "0.2"},
                                     {"whiten", "true"},
                                     {"dirac-init", "true"},
                                     {"norm-momentum", "0.4"},
                                     {"ema", "0.774"},
                                     {"ema-every", "5"},
                                     {"ema-ramp", "3"},
                                     {"lookahead", "true"},
                                     {"augment", "crop-flip"},
                                     {"flip", "alternating"},
                                     {"crop-fill", "reflect"}};
  fields.insert(fields.end(), others);
  return fields;
}

std::vector<PublishedRecipe> make_recipes() {
  std::vector<PublishedRecipe> recipes;
  for (const auto& [prefix, model] : {std::pair("rn50", "resnet50"), std::pair("rn18", "resnet18")}) {
    // min_res, start_ramp and end_ramp under `resolution` in the configurations; max_res is 192.
    for (const auto& [epochs, ramp] :
         {std::pair("16", "160:11:13"), std::pair("24", "160:17:20"), std::pair("32", "160:23:27"),
          std::pair("40", "160:29:34"), std::pair("56", "160:41:48"), std::pair("88", "160:65:76")}) {
      recipes.push_back({fmt::format("{}-ffcv-{}", prefix, epochs), ffcv, ffcv_fields(model, epochs, ramp)});
    }
  }
  // For 8 GPUs of one node.
  recipes.push_back({"rn50-mlperf",
                     mlperf,
                     {{"model", "resnet50"},
                      {"epochs", "37"},
                      {"global-batch", "3200"},
                      {"optimizer", "lars"},
                      {"momentum", "0.9"},
                      {"weight-decay", "5e-5"},
                      {"trust", "0.001"},
                      {"label-smoothing", "0.1"},
                      {"lr", "11"},
                      {"lr-batch", "0"},
                      {"schedule", "poly"},
                      {"poly-power", "2"},
                      {"lr-end", "1e-4"},
                      {"warmup", "2"}}});
  // For 3,584 GPUs of 448 nodes, where norms span groups of two ranks.
  recipes.push_back({"rn50-mlperf-57k",
                     mlperf,
                     {{"model", "resnet50"},
                      {"epochs", "77"},
                      {"global-batch", "57344"},
                      {"optimizer", "lars"},
                      {"momentum", "0.95"},
                      {"weight-decay", "2.5e-5"},
                      {"trust", "0.001"},
                      {"label-smoothing", "0.1"},
                      {"lr", "23"},
                      {"lr-batch", "0"},
                      {"schedule", "poly"},
                      {"poly-power", "2"},
                      {"lr-end", "1e-4"},
                      {"warmup", "32"}}});
  // 32 per GPU on 8 GPUs.
  recipes.push_back({"torchvision",
                     torchvision,
                     {{"model", "resnet50"},
                      {"epochs", "90"},
                      {"global-batch", "256"},
                      {"optimizer", "sgd"},
                      {"momentum", "0.9"},
                      {"weight-decay", "1e-4"},
                      {"label-smoothing", "0"},
                      {"lr", "0.1"},
                      {"lr-batch", "256"},
                      {"schedule", "step"},
                      {"milestones", "30 60"},
                      {"lr-factor", "0.1"},
                      {"warmup", "0"},
                      {"augment", "resized-crop-flip"},
                      {"image-size", "224"},
                      {"resize", "256"}}});
  // 128 per GPU on 8 GPUs. The original EMA decay of 0.99998 every 32 steps is adjusted by batch * 32 / epochs = 54.6.
  recipes.push_back({"torchvision-v2",
                     torchvision_v2,
                     {{"model", "resnet50"},
                      {"epochs", "600"},
                      {"global-batch", "1024"},
                      {"optimizer", "sgd"},
                      {"momentum", "0.9"},
                      {"weight-decay", "2e-5"},
                      {"no-decay-norm", "true"},
                      {"label-smoothing", "0.1"},
                      {"lr", "0.5"},
                      {"lr-batch", "1024"},
                      {"schedule", "cosine"},
                      {"warmup", "5"},
                      {"warmup-from", "0.01"},
                      {"ema", "0.998908"},
                      {"ema-every", "32"},
                      {"augment", "resized-crop-flip"},
                      {"image-size", "176"},
                      {"test-image-size", "224"},
                      {"resize", "232"}}});
  // lr 11.5 per 1,024 samples of a summed loss, divided by 1 + 1 / (1 - momentum): 1.5 for its mean. The decay, 0.0153
  // divided likewise, does not depend on that rate: 0.0153 / 11.5. airbench94's 9.9 epochs end in the tenth.
  recipes.push_back({"cifar10-94", airbench,
                     airbench_fields({{"model", "airbench"},
                                      {"epochs", "10"},
                                      {"global-batch", "1024"},
                                      {"lr", "1.5"},
                                      {"weight-decay", "1.33e-3"},
                                      {"lr-end", "0.105"},
                                      {"warmup", "2.3"},
                                      {"crop-padding", "2"},
                                      {"test-augment", "flip-shift"},
                                      {"test-every", "5"}})});
  // Likewise, from lr 10.
  recipes.push_back({"cifar10-95", "github.com/KellerJordan/cifar10-airbench, airbench95.py",
                     airbench_fields({{"model", "airbench95"},
                                      {"epochs", "15"},
                                      {"global-batch", "1024"},
                                      {"lr", "1.304"},
                                      {"weight-decay", "1.53e-3"},
                                      {"lr-end", "0.0913"},
                                      {"warmup", "3.45"},
                                      {"crop-padding", "2"},
                                      {"test-augment", "flip-shift"},
                                      {"test-every", "5"}})});
  // Ours, for three epochs: smaller batches, a rate that is higher and falls further, smaller shifts.
  recipes.push_back({"cifar10-90", "github.com/KellerJordan/cifar10-airbench, airbench94.py, shortened",
                     airbench_fields({{"model", "airbench"},
                                      {"epochs", "3"},
                                      {"global-batch", "256"},
                                      {"lr", "2"},
                                      {"weight-decay", "1.33e-3"},
                                      {"lr-end", "0.03"},
                                      {"warmup", "0.6"},
                                      {"crop-padding", "1"},
                                      {"test-augment", "flip"},
                                      {"test-every", "3"}})});
  // The source's rates of SGD, 0.053 for biases and 0.67 for the last layer, are for a loss that is summed over 2,000
  // samples. For its mean they are 106 and 1,340. Here the last layer's outputs are divided by 9 instead of 256, so its
  // rate is 1,340 * (9 / 256)^2 = 1.656. --lr-scale divides these rates by Muon's 0.24. The source's decay of 0.004 in
  // a step, divided by 1.656, is that of the last layer. In the source biases decay too, the first bias learns for
  // three epochs only, and Muon's products are bf16.
  recipes.push_back({"cifar10-94-muon",
                     airbench_muon,
                     {{"model", "airbench"},
                      {"epochs", "8"},
                      {"global-batch", "2000"},
                      {"optimizer", "muon"},
                      {"muon-momentum", "0.6"},
                      {"ns-steps", "3"},
                      {"momentum", "0.85"},
                      {"nesterov", "true"},
                      {"weight-decay", "2.415e-3"},
                      {"no-decay-norm", "true"},
                      {"label-smoothing", "0.2"},
                      {"lr", "0.24"},
                      {"lr-batch", "0"},
                      {"lr-scale", "*.norm?.weight=0 *.norm?.bias=442 whiten.bias=442 fc.weight=6.9"},
                      {"schedule", "poly"},
                      {"poly-power", "1"},
                      {"warmup", "0"},
                      {"whiten", "true"},
                      {"dirac-init", "true"},
                      {"norm-momentum", "0.4"},
                      {"augment", "crop-flip"},
                      {"flip", "alternating"},
                      {"crop-fill", "reflect"},
                      {"crop-padding", "2"},
                      {"test-augment", "flip-shift"},
                      {"test-every", "4"}}});
  // cifar10-single-node-gpus-cpu-DP.py
  recipes.push_back({"pai-cifar",
                     openpai,
                     {{"model", "lenet"},
                      {"epochs", "200"},
                      {"global-batch", "128"},
                      {"optimizer", "sgd"},
                      {"momentum", "0.9"},
                      {"weight-decay", "5e-4"},
                      {"label-smoothing", "0"},
                      {"lr", "0.1"},
                      {"lr-batch", "0"},
                      {"schedule", "step"},
                      {"milestones", "100 150"},
                      {"lr-factor", "0.1"},
                      {"warmup", "0"}}});
  // cifar10-single-mul-DDP-nccl-gloo.py: 100 per GPU on 4 GPUs.
  recipes.push_back({"pai-ddp",
                     openpai,
                     {{"model", "lenet"},
                      {"epochs", "2"},
                      {"global-batch", "400"},
                      {"optimizer", "sgd"},
                      {"momentum", "0"},
                      {"weight-decay", "0"},
                      {"label-smoothing", "0"},
                      {"lr", "1e-4"},
                      {"lr-batch", "0"},
                      {"schedule", "constant"},
                      {"warmup", "0"}}});
  // Lite-imagenet-single-mul-DDP-nccl-gloo.py: 256 per GPU on 8 GPUs.
  recipes.push_back({"pai-lite",
                     openpai,
                     {{"model", "resnet18"},
                      {"epochs", "2"},
                      {"global-batch", "2048"},
                      {"optimizer", "sgd"},
                      {"momentum", "0"},
                      {"weight-decay", "0"},
                      {"label-smoothing", "0"},
                      {"lr", "1e-4"},
                      {"lr-batch", "0"},
                      {"schedule", "constant"},
                      {"warmup", "0"},
                      {"augment", "resized-crop-flip"},
                      {"image-size", "224"},
                      {"resize", "256"}}});
  // PytorchExample-imagenet-single-mul-DDP-nccl-gloo.py: 256 on each of 2 nodes; the rate is not scaled.
  recipes.push_back({"pai-imagenet",
                     openpai,
                     {{"model", "resnet18"},
                      {"epochs", "90"},
                      {"global-batch", "512"},
                      {"optimizer", "sgd"},
                      {"momentum", "0.9"},
                      {"weight-decay", "1e-4"},
                      {"label-smoothing", "0"},
                      {"lr", "0.1"},
                      {"lr-batch", "0"},
                      {"schedule", "step"},
                      {"milestones", "30 60"},
                      {"lr-factor", "0.1"},
                      {"warmup", "0"},
                      {"augment", "resized-crop-flip"},
                      {"image-size", "224"},
                      {"resize", "256"}}});
  return recipes;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (const auto& word : text | std::views::split(' ')) words.emplace_back(word.begin(), word.end());
  return words;
}

}  // namespace

std::span<const PublishedRecipe> published_recipes() {
  static const std::vector<PublishedRecipe> recipes = make_recipes();
  return recipes;
}

const PublishedRecipe* find_recipe(std::string_view name) {
  const auto found = std::ranges::find(published_recipes(), name, &PublishedRecipe::name);
  return found == published_recipes().end() ? nullptr : &*found;
}

std::string known_recipes() {
  return fmt::format("{}", fmt::join(published_recipes() | std::views::transform(&PublishedRecipe::name), ", "));
}

void set_recipe(Settings& settings, const PublishedRecipe& recipe) {
  Recipe plain;
  plain.seed = settings.recipe.seed;
  plain.images = settings.recipe.images;
  plain.order = settings.recipe.order;
  plain.arithmetic = settings.recipe.arithmetic;
  plain.wire = settings.recipe.wire;
  plain.init = settings.recipe.init;
  settings.recipe = plain;
  settings.run.test_time_augmentation = TestTimeAugmentation::plain;
  settings.run.test_every = 1;
  for (const StatedField& stated : recipe.fields) {
    const auto field = std::ranges::find(training_fields(), stated.name, &Field::name);
    assert(field != training_fields().end());
    field->set(settings, split_words(stated.value));
  }
  settings.recipe.epochs.by = ChosenBy::program;  // so that --max-steps can override the recipe's epochs
}

}  // namespace lockstep
