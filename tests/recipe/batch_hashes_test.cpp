// The bits of batches, from the options of a training to normalized values. They are the same in every version, because
// a resumed training must see what it would have seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/loading/loader.hpp"
#include "dataset/shards/hash.hpp"
#include "recipe/fields.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::batch_hashes_test {

constexpr std::int64_t samples = 51;
constexpr std::int64_t global_batch = 24;  // two steps an epoch
constexpr int virtual_ranks = 8;           // of 3 samples: pairs of mixup are divided

void add(const Batch& batch, GrowingHash& hash) {
  for (const Tensor& tensor : {batch.images, batch.labels, batch.others, batch.shares}) {
    if (tensor) hash.add({tensor.data(), static_cast<std::size_t>(tensor.bytes())});
  }
}

// `options` are separated by spaces: "augment=crop cutout=5".
Recipe recipe_of(std::string_view options) {
  Settings settings;
  settings.recipe.seed = 11;
  settings.recipe.batch.global_batch = {global_batch};
  settings.recipe.batch.virtual_ranks = virtual_ranks;
  for (const auto& word : options | std::views::split(' ')) {
    const std::string option(word.begin(), word.end());
    const std::size_t equals = option.find('=');
    const auto field = std::ranges::find(training_fields(), option.substr(0, equals), &Field::name);
    field->set(settings, {option.substr(equals + 1)});
  }
  return settings.recipe;
}

// Of two epochs, in the order of positions.
std::string training_hash(const Dataset& dataset, const Recipe& recipe, int ranks, int threads) {
  GrowingHash hash;
  for (const std::int64_t epoch : {0, 2}) {
    const ImageRules rules = training_rules(recipe.images, dataset.manifest(), epoch);
    const auto blocks = block_shuffle(recipe.order, dataset.manifest(), global_batch);
    std::vector<std::unique_ptr<Loader>> loaders;
    for (int rank = 0; rank < ranks; ++rank) {
      const LoaderShare share = loader_share(recipe.batch, rank, ranks);
      loaders.push_back(
          make_host_loader(training_source(dataset, share, rules, recipe.seed, epoch, 0, threads, blocks)));
    }
    for (int step = 0; step < 2; ++step) {
      for (int rank = 0; rank < ranks; ++rank) {
        const int micro_batches = loader_share(recipe.batch, rank, ranks).micro_batches;
        for (int i = 0; i < micro_batches; ++i) add(loaders[static_cast<std::size_t>(rank)]->next(), hash);
      }
    }
  }
  return hash.hex();
}

// Each sample once; the last batch is incomplete.
std::string evaluation_hash(const Dataset& dataset, const Recipe& recipe, int threads) {
  constexpr std::int64_t batch = 10;
  const ImageRules rules = test_rules(recipe.images, dataset.manifest());
  const auto loader = make_host_loader(evaluation_source(dataset, rules, batch, 0, 1, threads));
  GrowingHash hash;
  for (std::int64_t i = 0; i < evaluation_batches(samples, batch, 1); ++i) add(loader->next(), hash);
  return hash.hex();
}

struct BatchesOf {
  std::string_view data;
  std::string_view options;
  std::string_view training;
  std::string_view evaluation;
};

constexpr BatchesOf known[] = {
    {"images", "augment=auto", "e7f628e91956ee84dd7eee25c99a2930", "01c949b6c228735a642029ebc0321dae"},
    {"images", "augment=none", "f7e973c5860e62def4db4fdf4bb8da19", "01c949b6c228735a642029ebc0321dae"},
    {"images", "augment=crop shuffle=blocks", "f4200620c5cbd8b22f59b138ec6a4f66", "01c949b6c228735a642029ebc0321dae"},
    {"images", "cutout=7", "dbae15638f74e0958dd8570bdaf651bf", "01c949b6c228735a642029ebc0321dae"},
    {"images", "color-jitter=0.4", "1c0f429ca4cc9612c1455c81180c8baf", "01c949b6c228735a642029ebc0321dae"},
    {"images", "mixup=0.2", "ef85279e052f159be6f0ba452f6b2ac7", "01c949b6c228735a642029ebc0321dae"},
    {"images", "mixup=1 cutout=6 color-jitter=0.4,0.2,0.6", "a30cb07d9662508dd5c0e412d0a7af61",
     "01c949b6c228735a642029ebc0321dae"},
    {"images", "augment=resized-crop-flip crop-area=0.3 mixup=1", "9de9b34b7ef062eb16d96f8cb280c8a2",
     "01c949b6c228735a642029ebc0321dae"},
    {"images", "image-size=24 image-size-ramp=16:0:4:4", "6fd098583ef710687f7254aa8e70d62c",
     "a8e1f6e1309b6a76a6591655b10a7ee9"},
    {"images", "augment=crop-flip crop-fill=reflect crop-padding=15", "536849b7418bf814ca9903aefadf5bb8",
     "01c949b6c228735a642029ebc0321dae"},
    {"gray", "augment=crop", "d5a448ad0a65b90b5c3598fc8b1b93a4", "9a420bbe5bae6800b5a4eff1e75d7705"},
    {"gray", "augment=crop-flip mixup=0.5 cutout=4", "428728a64f4ee1919331967b153736dd",
     "9a420bbe5bae6800b5a4eff1e75d7705"},
    {"pictures", "augment=auto", "a1ea40fa4af9204a3a5cbf7a2fd98273", "78de2887b40957dcdc298be0247c766f"},
    {"pictures", "augment=crop resize=60 cutout=9", "39bae8f84dd91f319adb6996358d36fb",
     "ab125e03019fead0c4e8c35fc00d2d7e"},
    {"pictures", "augment=resized-crop-flip image-size=32 test-image-size=40", "2f414a5166f0475899214618bc18086f",
     "6853331f9880161978b528208c771bb5"},
    {"pictures", "augment=crop-flip image-size=128 color-jitter=0.3 cutout=30", "593d1a32b30e97a1190c740d0c582ec0",
     "ca720671e4227d10f6fb0e9403cc2e3b"},
    {"jpeg", "augment=auto", "eb2a3b38c2b2b3d211ec7fdb02ea6a72", "2e8cad455514a982f9010c0163e87a39"},
    {"jpeg", "augment=none image-size=33", "6bdb106c7e7840ac4ece3499cf0a0c1e", "74fc9c4de657335d559d1c12b4ed52f4"},
    {"jpeg", "image-size=20 decode=exact", "e3cc58058eecf200b6a1d4e5290e4479", "e4f263fd7d4c877b8507f3c6c164fd89"},
    {"jpeg", "image-size=20 decode=scaled crop-area=0.6", "0e84b7f9dc138263ba9cd5454d8917a6",
     "6ad7316d4c1bc5d957a3bb16466f5bef"},
    {"jpeg", "augment=crop-flip image-size=48 image-size-ramp=24:0:4:8 resize=50 color-jitter=0.4",
     "3d2c1c75ba2be706a20e6971be86c18b", "553994269eb92f69cd9e262dee7ca39d"},
    {"jpeg", "augment=crop-flip image-size=48 crop-fill=reflect crop-padding=8", "e81c133109e6f910cd624b3ff6241cd9",
     "4f0e963bc5d829409a5dc07bb9e6fb21"},
    {"jpeg", "image-size=112 mixup=0.2", "70cb618fc77a29abe605dbf612d040b7", "e4e680e450e10279a478708f1859e90f"},
    {"jpeg", "image-size=112 mixup=1 cutout=40 color-jitter=0.4", "57f5c4b97c9343a5c3cbaa264a200d34",
     "e4e680e450e10279a478708f1859e90f"},
};

std::filesystem::path write_data(const std::filesystem::path& folder, std::string_view name) {
  const std::filesystem::path split = folder / name;
  if (std::filesystem::exists(split)) return split;
  const auto write = [&](const SampleShape& shape, SampleStore store) {
    write_small_data_set(split, shape, samples, 20, store);
  };
  if (name == "images") write({20, 16, 3}, SampleStore::images);
  if (name == "gray") write({14, 12, 1}, SampleStore::images);
  if (name == "pictures") write({40, 48, 3}, SampleStore::pictures);
  if (name == "jpeg") write({72, 96, 3}, SampleStore::jpeg);
  return split;
}

TEST(BatchHashes, are_the_same_in_every_version_and_for_any_number_of_ranks_and_threads) {
  const TemporaryFolder folder;
  for (const BatchesOf& batches : known) {
    SCOPED_TRACE(std::string(batches.data) + ": " + std::string(batches.options));
    const Dataset dataset(write_data(folder.path(), batches.data));
    const Recipe recipe = recipe_of(batches.options);
    EXPECT_EQ(training_hash(dataset, recipe, 1, 1), batches.training);
    EXPECT_EQ(training_hash(dataset, recipe, 1, 4), batches.training);
    EXPECT_EQ(training_hash(dataset, recipe, 3, 2), batches.training);
    EXPECT_EQ(evaluation_hash(dataset, recipe, 1), batches.evaluation);
    EXPECT_EQ(evaluation_hash(dataset, recipe, 4), batches.evaluation);
  }
}

}  // namespace lockstep::batch_hashes_test
