// Which micro-batches each rank has, and what cannot be shared.
#include <gtest/gtest.h>

#include <optional>

#include "recipe/recipe.hpp"
#include "recipe/refusals.hpp"

namespace lockstep::recipe_test {

BatchOptions global(std::int64_t samples, int accumulate = 1) {
  return {ChosenNumber{samples}, std::nullopt, accumulate};
}

BatchOptions usual(std::int64_t samples, int accumulate = 1) {
  return {ChosenNumber{samples, ChosenBy::program}, std::nullopt, accumulate};
}

BatchOptions per_rank(std::int64_t samples, int accumulate) { return {std::nullopt, samples, accumulate}; }

BatchOptions virtual_ranks(BatchOptions options, int parts) {
  options.virtual_ranks = parts;
  return options;
}

TEST(LoaderShareTest, parts_go_to_ranks_in_order) {
  const LoaderShare share = loader_share(global(96, 2), 1, 3);
  EXPECT_EQ(share.global_batch, 96);
  EXPECT_EQ(share.total_micro_batches, 6);
  EXPECT_EQ(share.first_micro_batch, 2);
  EXPECT_EQ(share.micro_batches, 2);
  EXPECT_EQ(share.micro_batch_size(), 16);
}

TEST(LoaderShareTest, a_batch_per_rank_counts_once_for_each_part_of_each_rank) {
  EXPECT_EQ(loader_share(per_rank(32, 4), 0, 2).global_batch, 256);
}

// The batch is that of one update.
TEST(LoaderShareTest, a_step_has_as_many_batches_as_each_rank_makes_updates) {
  BatchOptions options = global(96);
  options.local_steps = 4;
  const LoaderShare share = loader_share(options, 1, 3);
  EXPECT_EQ(share.global_batch, 384);
  EXPECT_EQ(share.update_batch(), 96);
  EXPECT_EQ(share.total_micro_batches, 12);
  EXPECT_EQ(share.first_micro_batch, 4);
  EXPECT_EQ(share.micro_batches, 4);
  EXPECT_EQ(share.micro_batch_size(), 32);
}

TEST(LoaderShareTest, virtual_ranks_go_to_ranks_in_order_as_evenly_as_they_can) {
  for (int ranks = 1; ranks <= 12; ++ranks) {
    int next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const LoaderShare share = loader_share(virtual_ranks(global(96), 12), rank, ranks);
      EXPECT_EQ(share.global_batch, 96);
      EXPECT_EQ(share.total_micro_batches, 12);
      EXPECT_EQ(share.micro_batch_size(), 8);
      EXPECT_EQ(share.first_micro_batch, next);
      EXPECT_GE(share.micro_batches, 12 / ranks);
      EXPECT_LE(share.micro_batches, (12 + ranks - 1) / ranks);
      next += share.micro_batches;
    }
    EXPECT_EQ(next, 12);
  }
}

TEST(LoaderShareTest, a_batch_that_cannot_be_shared_is_refused) {
  expect_refusals({
      {"global batch", [] { loader_share(global(100), 0, 3); }, "--global-batch"},
      {"smaller than the parts", [] { loader_share(global(5, 4), 0, 2); }, "--global-batch"},
      {"no sample", [] { loader_share(global(0), 0, 1); }, "--global-batch"},
      {"2^40 samples", [] { loader_share(per_rank(std::int64_t{1} << 40, 1), 0, 1); }, "--batch-per-rank"},
      {"accumulation", [] { loader_share(global(8, 0), 0, 1); }, "--accumulate"},
      {"more ranks than virtual ones", [] { loader_share(virtual_ranks(global(96), 12), 0, 13); }, "--virtual-ranks"},
      {"one virtual rank", [] { loader_share(virtual_ranks(global(96), 1), 0, 2); }, "--virtual-ranks"},
      {"global batch of virtual ranks", [] { loader_share(virtual_ranks(global(100), 12), 0, 1); }, "--global-batch"},
      {"accumulation of virtual ranks", [] { loader_share(virtual_ranks(global(96, 2), 12), 0, 1); },
       "--virtual-ranks"},
      {"batch of each rank, virtual ranks", [] { loader_share(virtual_ranks(per_rank(8, 1), 12), 0, 1); },
       "--batch-per-rank"},
      {"fewer samples than ranks", [] { fit_global_batch(usual(128), 3, 2); }, ""},
      {"fewer samples than parts", [] { fit_global_batch(usual(128, 2), 3, 5); }, "--accumulate"},
      {"fewer samples than virtual ranks", [] { fit_global_batch(virtual_ranks(usual(128), 12), 3, 5); },
       "--virtual-ranks"},
  });
}

TEST(LoaderShareTest, servers_have_no_micro_batches_and_trainers_share_all) {
  for (const int servers : {1, 3}) {
    for (int rank = 0; rank < 2 + servers; ++rank) {
      const LoaderShare share = loader_share(global(96, 2), rank, 2 + servers, servers);
      EXPECT_EQ(share.global_batch, 96);
      EXPECT_EQ(share.total_micro_batches, 4);
      EXPECT_EQ(share.micro_batches, rank < 2 ? 2 : 0);
      EXPECT_EQ(share.first_micro_batch, rank < 2 ? rank * 2 : 4);
    }
  }
}

// Three ranks were refused the default, whose neighbours they then had to type.
TEST(LoaderShareTest, a_batch_that_the_program_chose_fits_itself_to_ranks_and_data) {
  const auto fits = [](const BatchOptions& options, int ranks, std::int64_t samples) {
    return fit_global_batch(options, ranks, samples).global_batch->value;
  };
  EXPECT_EQ(fits(usual(128), 2, 50000), 128);
  EXPECT_EQ(fits(usual(128), 3, 50000), 126);
  EXPECT_EQ(fits(usual(128, 3), 3, 50000), 126);
  EXPECT_EQ(fits(usual(128), 200, 50000), 200);
  EXPECT_EQ(fits(usual(256), 1, 80), 80);
  EXPECT_EQ(fits(usual(256), 3, 80), 78);
  EXPECT_EQ(fits(global(128), 3, 80), 128) << "a user's is kept, and refused";
  BatchOptions local = usual(128);
  local.local_steps = 8;
  EXPECT_EQ(fits(local, 3, 50000), 126);
  EXPECT_EQ(fits(local, 3, 80 * 8), 78);
  for (const int ranks : {1, 2, 5, 12}) EXPECT_EQ(fits(virtual_ranks(usual(128), 12), ranks, 50000), 120) << ranks;
}

int norm_group(const BatchOptions& batch, int sync_batch_norm_ranks, int ranks) {
  Recipe recipe;
  recipe.batch = batch;
  recipe.sync_batch_norm_ranks = sync_batch_norm_ranks;
  return norm_group_size(recipe, loader_share(batch, 0, ranks), ranks);
}

TEST(NormGroupSizeTest, ranks_are_taken_as_the_recipe_says) {
  EXPECT_EQ(norm_group(global(96), 1, 4), 1);
  EXPECT_EQ(norm_group(global(96), 2, 4), 2);
  EXPECT_EQ(norm_group(global(96), 0, 4), 4) << "all";
  EXPECT_EQ(norm_group(global(96, 3), 0, 2), 2) << "parts of a rank meet those of others one after another";
  EXPECT_EQ(norm_group(virtual_ranks(global(96), 4), 2, 4), 2) << "each virtual rank has a rank of its own";
  expect_refusals({
      {"unequal groups", [] { norm_group(global(96), 3, 4); }, "--sync-batch-norm"},
      {"several virtual ranks on a rank", [] { norm_group(virtual_ranks(global(96), 4), 2, 1); }, "--sync-batch-norm"},
  });
}

}  // namespace lockstep::recipe_test
