#include "dataset/loading/loader.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "dataset/loaded_part.hpp"
#include "dataset/loading/normalizer.hpp"
#include "dataset/loading/sampler.hpp"
#include "dataset/loading/window.hpp"
#include "support/messages.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::loader_test {

constexpr SampleShape shape{8, 6, 3};
constexpr std::int64_t samples = 103;  // with a global batch of 24: four steps and seven samples dropped
constexpr std::int64_t global_batch = 24;
constexpr std::size_t image_count = 8 * 6 * 3;

constexpr PictureSize image{shape.height, shape.width};
const ImageRules rules{image, Augmentation::crop_and_flip};

class LoaderTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory() = std::filesystem::path(testing::TempDir()) / ("loader_test_" + std::to_string(getpid()));
    write_small_data_set(directory(), shape, samples, 40);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(directory()); }
  static std::filesystem::path& directory() {
    static std::filesystem::path path;
    return path;
  }

  // All parts of `steps` steps in the order of positions, as `ranks` ranks with parts_per_rank parts each load them.
  std::vector<Part> load(int ranks, int parts_per_rank, std::int64_t epoch, std::int64_t step, std::int64_t steps,
                         int threads = 1) const {
    std::vector<std::unique_ptr<Loader>> loaders;
    for (int rank = 0; rank < ranks; ++rank) {
      const LoaderShare share{global_batch, ranks * parts_per_rank, rank * parts_per_rank, parts_per_rank};
      loaders.push_back(make_host_loader(training_source(dataset_, share, rules, 11, epoch, step, threads)));
    }
    std::vector<Part> parts;
    for (std::int64_t s = 0; s < steps; ++s) {
      for (const auto& loader : loaders) {
        for (int part = 0; part < parts_per_rank; ++part) parts.push_back(take(*loader));
      }
    }
    return parts;
  }

  const Dataset dataset_{directory()};
};

TEST_F(LoaderTest, parts_are_the_same_for_any_number_of_ranks_and_threads) {
  const std::vector<Part> alone = load(1, 4, 0, 0, 11);
  ASSERT_EQ(alone.size(), 44U);
  EXPECT_EQ(load(2, 2, 0, 0, 11), alone);
  EXPECT_EQ(load(4, 1, 0, 0, 11), alone);
  EXPECT_EQ(load(1, 4, 0, 0, 11, 3), alone);
}

TEST_F(LoaderTest, starts_at_any_epoch_and_step) {
  const std::vector<Part> from_start = load(1, 2, 0, 0, 12);
  const std::vector<Part> later = load(1, 2, 1, 3, 5);  // four steps an epoch: step 7 of all
  EXPECT_EQ(later, std::vector<Part>(from_start.begin() + 14, from_start.end()));
}

TEST_F(LoaderTest, epoch_takes_each_sample_at_most_once_and_drops_the_incomplete_batch) {
  const std::vector<Part> epochs = load(1, 1, 0, 0, 8);
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    const SampleOrder order(samples, 11, static_cast<std::int64_t>(epoch));
    for (std::size_t step = 0; step < 4; ++step) {
      const Part& part = epochs[epoch * 4 + step];
      EXPECT_EQ(part.samples, global_batch);
      for (std::size_t i = 0; i < part.labels.size(); ++i) {
        const auto position = static_cast<std::int64_t>(step) * global_batch + static_cast<std::int64_t>(i);
        EXPECT_EQ(part.labels[i], small_label(order.sample_at(position)));
      }
    }
  }
  EXPECT_NE(epochs[0], epochs[4]);
}

TEST_F(LoaderTest, sample_is_cropped_and_mirrored_by_its_position) {
  const Part part = load(1, 1, 2, 1, 1).front();
  const Normalizer normalizer(dataset_.manifest().mean, dataset_.manifest().deviation);
  const SampleOrder order(samples, 11, 2);
  for (std::size_t i = 0; i < static_cast<std::size_t>(global_batch); ++i) {
    const std::int64_t position = global_batch + static_cast<std::int64_t>(i);
    const Picture picture = dataset_.picture(order.sample_at(position));
    std::vector<std::uint8_t> window(image_count);
    cut_window({picture}, draw_augmentation(rules, 11, {2, position}, picture.size), image, window);
    std::vector<float> expected(image_count);
    normalizer.write(window, expected);
    const auto first = part.images.begin() + static_cast<std::ptrdiff_t>(i * image_count);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), first)) << "sample " << i;
  }
}

TEST_F(LoaderTest, tensors_have_the_shape_layout_and_alignment_that_a_device_takes) {
  const auto loader = make_host_loader(training_source(dataset_, {24, 2, 0, 1}, {image}, 1, 0, 0, 1));
  const Batch& batch = loader->next();
  EXPECT_EQ(batch.images.shape(), (Shape{12, 8, 6, 3}));
  EXPECT_EQ(batch.images.layout(), Layout::images);
  EXPECT_EQ(batch.images.dtype(), DType::f32);
  EXPECT_EQ(batch.images.bytes(), 12 * 8 * 6 * 3 * 4);
  EXPECT_EQ(batch.labels.shape(), (Shape{12}));
  EXPECT_EQ(batch.labels.dtype(), DType::i32);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch.images.data()) % 64, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch.labels.data()) % 64, 0U);
}

TEST_F(LoaderTest, memory_is_reused_from_the_first_lap_on) {
  const auto loader = make_host_loader(training_source(dataset_, {24, 2, 0, 1}, {image}, 1, 0, 0, 2));
  std::vector<const std::byte*> first_lap;
  for (int part = 0; part < 4; ++part) first_lap.push_back(loader->next().images.data());
  for (int part = 0; part < 40; ++part) {
    EXPECT_EQ(loader->next().images.data(), first_lap[static_cast<std::size_t>(part % 4)]);
  }
}

struct Awkward {
  std::int64_t batch;
  int ranks;
};
class EvaluationLoader : public LoaderTest, public testing::WithParamInterface<Awkward> {};

TEST_P(EvaluationLoader, gives_each_sample_once_over_all_ranks) {
  const auto [batch, ranks] = GetParam();
  const std::int64_t batches = evaluation_batches(samples, batch, ranks);
  const Normalizer normalizer(dataset_.manifest().mean, dataset_.manifest().deviation);
  std::vector<std::unique_ptr<Loader>> loaders;
  for (int rank = 0; rank < ranks; ++rank)
    loaders.push_back(make_host_loader(evaluation_source(dataset_, {image}, batch, rank, ranks, 2)));

  for (int lap = 0; lap < 2; ++lap) {
    std::int64_t next_sample = 0;
    for (std::int64_t b = 0; b < batches; ++b) {
      for (const auto& loader : loaders) {
        const Part part = take(*loader);
        std::int64_t counted = 0;
        for (std::size_t i = 0; i < part.labels.size(); ++i) {
          std::vector<float> expected(image_count, 0.0F);
          if (part.labels[i] != -1) {
            normalizer.write(dataset_.picture(next_sample).pixels, expected);
            EXPECT_EQ(part.labels[i], small_label(next_sample));
            ++next_sample;
            ++counted;
          }
          const auto first = part.images.begin() + static_cast<std::ptrdiff_t>(i * image_count);
          ASSERT_TRUE(std::equal(expected.begin(), expected.end(), first)) << "place " << i << " of batch " << b;
        }
        EXPECT_EQ(part.samples, counted);
      }
    }
    EXPECT_EQ(next_sample, samples);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EvaluationLoader,
                         testing::Values(Awkward{1, 1}, Awkward{10, 1}, Awkward{103, 1}, Awkward{200, 1},
                                         Awkward{10, 2}, Awkward{16, 3}, Awkward{50, 4}, Awkward{103, 2}));

TEST_F(LoaderTest, refuses_a_global_batch_larger_than_the_training_set_in_words) {
  try {
    make_host_loader(training_source(dataset_, {128, 1, 0, 1}, {image}, 1, 0, 0, 1));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::usage);
    expect_message(error.what(), {"103 samples", "128"});
  }
}

TEST_F(LoaderTest, counts_how_long_the_caller_waited_and_nothing_else) {
  const auto loader =
      make_host_loader(training_source(dataset_, {103, 1, 0, 1}, {image, Augmentation::crop}, 1, 0, 0, 1));
  // A caller that does nothing with the parts overtakes the thread sooner or later.
  for (int part = 0; part < 100'000 && loader->waited_ms() == 0.0; ++part) loader->next();
  EXPECT_GT(loader->waited_ms(), 0.0);

  // One that takes its time does not wait, unless the machine has other things to do.
  bool counted_nothing = false;
  for (int part = 0; part < 100 && !counted_nothing; ++part) {
    const double before = loader->waited_ms();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    loader->next();
    counted_nothing = loader->waited_ms() == before;
  }
  EXPECT_TRUE(counted_nothing);
}

TEST_F(LoaderTest, ends_at_once_whether_parts_were_taken_or_not) {
  for (int taken = 0; taken < 6; ++taken) {
    const auto loader =
        make_host_loader(training_source(dataset_, {24, 1, 0, 1}, {image, Augmentation::crop}, 1, 0, 0, 3));
    for (int part = 0; part < taken; ++part) loader->next();
  }
}

// Neither do colors and squares depend on who draws them.
TEST_F(LoaderTest, changed_colours_and_erased_squares_are_the_same_on_any_number_of_ranks_and_threads) {
  ImageRules changed = rules;
  changed.transforms.jitter = {0.4F, 0.4F, 0.4F};
  changed.transforms.cutout = 4;
  const auto load_changed = [&](int ranks, int threads) {
    std::vector<float> images;
    std::vector<std::unique_ptr<Loader>> loaders;
    for (int rank = 0; rank < ranks; ++rank) {
      loaders.push_back(make_host_loader(training_source(dataset_, {24, ranks, rank, 1}, changed, 11, 1, 2, threads)));
    }
    for (int step = 0; step < 3; ++step) {
      for (const auto& loader : loaders) {
        const Part part = take(*loader);
        images.insert(images.end(), part.images.begin(), part.images.end());
      }
    }
    return images;
  };
  const std::vector<float> alone = load_changed(1, 1);
  EXPECT_EQ(load_changed(3, 2), alone);
  EXPECT_GT(std::ranges::count(alone, 0.0F), 3 * 24 * 4);
}

TEST_F(LoaderTest, a_square_larger_than_the_images_is_refused) {
  ImageRules erased{image};
  erased.transforms.cutout = 7;
  expect_error(Failure::usage, {"--cutout"}, [&] { training_source(dataset_, {24, 1, 0, 1}, erased, 1, 0, 0, 1); });
}

TEST_F(LoaderTest, a_reflection_needs_pictures_larger_than_their_padding_and_padded_ones_as_large_as_images) {
  ImageRules reflected{image, Augmentation::crop};
  reflected.transforms.crop_fill = CropFill::reflect;
  const auto source_of = [](const Dataset& dataset, const ImageRules& padded) {
    training_source(dataset, {24, 1, 0, 1}, padded, 1, 0, 0, 1);
  };
  reflected.transforms.crop_padding = 5;
  source_of(dataset_, reflected);
  reflected.transforms.crop_padding = 6;
  expect_error(Failure::usage, {"--crop-padding 6", "8 x 6"}, [&] { source_of(dataset_, reflected); });
  reflected.transforms.crop_padding = 1;
  reflected.shorter_side = 3;  // 4 x 3 pixels
  expect_error(Failure::usage, {"--resize", "4 x 3"}, [&] { source_of(dataset_, reflected); });
  reflected.shorter_side = 6;
  source_of(dataset_, reflected);

  const TemporaryFolder folder;
  write_small_data_set(folder.path(), shape, samples, 40, SampleStore::pictures);
  const Dataset pictures(folder.path());
  reflected.shorter_side.reset();
  expect_error(Failure::usage, {"--crop-fill reflect", "--resize"}, [&] { source_of(pictures, reflected); });
  reflected.transforms.crop_padding = 40;
  for (const Augmentation other : {Augmentation::none, Augmentation::resized_crop}) {
    reflected.augmentation = other;
    source_of(pictures, reflected);
  }
  reflected = {image, Augmentation::crop};
  source_of(pictures, reflected);
}

// Of an order by blocks as of any other, a batch does not depend on who loads it, or on where loading began.
TEST_F(LoaderTest, blocks_are_shuffled_the_same_on_any_number_of_ranks_and_from_any_step_on) {
  const BlockShuffle blocks{10, 12, 6};
  const auto labels = [&](int ranks, std::int64_t epoch, std::int64_t step, int steps) {
    std::vector<std::int32_t> all;
    std::vector<std::unique_ptr<Loader>> loaders;
    for (int rank = 0; rank < ranks; ++rank) {
      const LoaderShare share{24, ranks, rank, 1};
      loaders.push_back(make_host_loader(training_source(dataset_, share, rules, 11, epoch, step, 2, blocks)));
    }
    for (int s = 0; s < steps; ++s) {
      for (const auto& loader : loaders) {
        const Part part = take(*loader);
        all.insert(all.end(), part.labels.begin(), part.labels.end());
      }
    }
    return all;
  };
  const std::vector<std::int32_t> alone = labels(1, 0, 0, 8);  // two epochs
  EXPECT_EQ(labels(2, 0, 0, 8), alone);
  EXPECT_EQ(labels(4, 0, 0, 8), alone);
  EXPECT_EQ(labels(3, 1, 1, 3), std::vector<std::int32_t>(alone.begin() + 5 * 24, alone.end()));
  for (int epoch = 0; epoch < 2; ++epoch) {
    const BlockOrder order(samples, 24, blocks, 11, epoch);
    for (std::int64_t position = 0; position < 96; ++position) {
      EXPECT_EQ(alone[static_cast<std::size_t>(epoch * 96 + position)], small_label(order.sample_at(position)));
    }
  }
}

// Each sample of a full shuffle, and each part of an evaluation, is asked for before it is read.
TEST(MicroBatchSamplerTest, what_is_needed_ahead_is_what_comes) {
  constexpr std::int64_t few = 50;
  constexpr int steps_ahead = 2;
  const LoaderShare share{12, 4, 1, 2};
  const auto plan = make_training_sampler(few, share, 5, 0, {}, steps_ahead);
  for (std::int64_t part = 0; part < 20; ++part) {  // over the borders of epochs of four steps
    const MicroBatchRange now = plan->place(part);
    const MicroBatchRange then = plan->place(part + steps_ahead * share.micro_batches);
    for (std::int64_t i = 0; i < now.samples; ++i) {
      const SampleRange expected{plan->sample_at(then, then.first + i), 1};
      EXPECT_EQ(plan->needed_ahead(now, now.first + i), expected) << "part " << part;
    }
  }
  const auto tests = make_evaluation_sampler(few, 8, 1, 2, 2);
  for (std::int64_t part = 0; part < 4; ++part) {
    const MicroBatchRange now = tests->place(part);
    const MicroBatchRange then = tests->place(part + 2);
    const bool comes = part + 2 < evaluation_batches(few, 8, 2) && then.samples > 0;
    const auto expected = comes ? std::optional(SampleRange{then.first, then.samples}) : std::nullopt;
    EXPECT_EQ(tests->needed_ahead(now, now.first), expected) << "part " << part;
    EXPECT_EQ(tests->needed_ahead(now, now.first + 1), std::nullopt);
  }
}

}  // namespace lockstep::loader_test
