// Images mixed of two, as training's loaders give them.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "dataset/loading/loader.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::mixed_loader_test {

constexpr SampleShape shape{8, 6, 3};
constexpr std::int64_t samples = 103;  // with a global batch of 24: four steps and seven samples dropped
constexpr std::size_t image_count = 8 * 6 * 3;
const ImageRules rules{{8, 6}, Augmentation::crop_and_flip};

// Of one part or several, copied out of the loader's memory.
struct Part {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  std::vector<std::int32_t> others;
  std::vector<float> shares;
  bool operator==(const Part&) const = default;

  void take(Loader& loader) {
    const Batch& batch = loader.next();
    append<float>(batch.images, images);
    append<std::int32_t>(batch.labels, labels);
    append<std::int32_t>(batch.others, others);
    append<float>(batch.shares, shares);
  }

 private:
  template <typename Value>
  static void append(const Tensor& tensor, std::vector<Value>& values) {
    if (tensor) values.insert(values.end(), tensor.as<Value>(), tensor.as<Value>() + tensor.shape().count());
  }
};

class MixedLoader : public testing::Test {
 protected:
  Part first_micro_batch(const LoaderSource& source) const {
    Part part;
    part.take(*make_host_loader(source));
    return part;
  }

  const TemporaryFolder folder_;
  const Dataset dataset_{write(folder_)};

 private:
  static const std::filesystem::path& write(const TemporaryFolder& folder) {
    write_small_data_set(folder.path(), shape, samples, 40);
    return folder.path();
  }
};

// Both of a pair are mixed from what they were, whether a part holds both of them or one.
TEST_F(MixedLoader, images_are_mixed_with_their_neighbours_on_any_number_of_ranks) {
  ImageRules mixed = rules;
  mixed.transforms.mixup = 1.0F;
  const auto load_mixed = [&](const ImageRules& by, int parts_of_all, int ranks) {
    Part whole;
    std::vector<std::unique_ptr<Loader>> loaders;
    const int each = parts_of_all / ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      const LoaderShare share{24, parts_of_all, rank * each, each};
      loaders.push_back(make_host_loader(training_source(dataset_, share, by, 11, 1, 2, 2)));
    }
    for (int step = 0; step < 3; ++step) {
      for (const auto& loader : loaders) {
        for (int part_of_rank = 0; part_of_rank < each; ++part_of_rank) {
          whole.take(*loader);
        }
      }
    }
    return whole;
  };
  const Part alone = load_mixed(mixed, 1, 1);
  EXPECT_EQ(load_mixed(mixed, 2, 2), alone);
  EXPECT_EQ(load_mixed(mixed, 8, 4), alone);  // of 3 samples
  EXPECT_EQ(load_mixed(mixed, 24, 3), alone);
  const Part plain = load_mixed(rules, 1, 1);
  EXPECT_TRUE(plain.others.empty());
  EXPECT_EQ(alone.labels, plain.labels);
  for (std::size_t i = 0; i < alone.labels.size(); ++i) {
    const std::size_t other = i ^ 1;
    // Two steps of epoch 1, then one of epoch 2.
    const auto position = static_cast<std::int64_t>(i < 48 ? i + 48 : i - 48);
    const float share = mixup_weight(1.0F, 11, i < 48 ? 1 : 2, position - position % 2);
    ASSERT_EQ(alone.shares[i], share) << i;
    ASSERT_EQ(alone.others[i], plain.labels[other]) << i;
    for (std::size_t value = 0; value < image_count; ++value) {
      ASSERT_FLOAT_EQ(
          alone.images[i * image_count + value],
          share * plain.images[i * image_count + value] + (1 - share) * plain.images[other * image_count + value]);
    }
  }
}

// The last of an odd number of samples has no neighbour, and stays what it is.
TEST_F(MixedLoader, a_sample_without_a_neighbour_is_not_mixed) {
  ImageRules mixed = rules;
  mixed.transforms.mixup = 1.0F;
  const Part part = first_micro_batch(training_source(dataset_, {103, 1, 0, 1}, mixed, 11, 0, 0, 1));
  const Part plain = first_micro_batch(training_source(dataset_, {103, 1, 0, 1}, rules, 11, 0, 0, 1));
  EXPECT_EQ(part.shares.back(), 1);
  EXPECT_EQ(part.others.back(), part.labels.back());
  EXPECT_TRUE(std::equal(part.images.end() - image_count, part.images.end(), plain.images.end() - image_count));
}

TEST_F(MixedLoader, evaluation_mixes_nothing) {
  ImageRules mixed = rules;
  mixed.transforms.mixup = 1.0F;
  EXPECT_TRUE(first_micro_batch(evaluation_source(dataset_, mixed, 10, 0, 1, 1)).others.empty());
}

}  // namespace lockstep::mixed_loader_test
