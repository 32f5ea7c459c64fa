#include "recommendation/rating_training.hpp"

#include <gmock/gmock.h>

#include "comm/agreed_error.hpp"
#include "support/messages.hpp"

namespace lockstep::rating_training_test {

class RatingTrainingTest : public testing::Test {
 protected:
  // Every rank takes the same part of the steps' losses.
  std::vector<double> train(RatingTraining& training, std::int64_t first, std::int64_t last) {
    std::vector<double> losses;
    for (std::int64_t step = first; step <= last; ++step) losses.push_back(training.step(step));
    return losses;
  }
  static RatingTrainingOptions options(RowOptimizerKind kind, float decay = 0) {
    return {.width = 8,
            .batch = 64,
            .virtual_ranks = 4,
            .optimizer = {.kind = kind, .learning_rate = 0.01F, .weight_decay = decay}};
  }

  Communicator world_{MPI_COMM_WORLD};
  Communicator self_{MPI_COMM_SELF};
  Session session_{world_, open_backend({.name = "cpu", .threads = 1})};
  Session alone_{self_, open_backend({.name = "cpu", .threads = 1})};
  // 180 ratings for training: the third batch of a pass has 52.
  RatingData data_ = make_synthetic_ratings({.users = 30, .movies = 20, .ratings = 200});
};

TEST_F(RatingTrainingTest, weights_do_not_depend_on_the_number_of_ranks) {
  for (const RowOptimizerKind kind : {RowOptimizerKind::rmsprop, RowOptimizerKind::adamw}) {
    const RatingTrainingOptions chosen = options(kind, kind == RowOptimizerKind::adamw ? 0.1F : 0);
    RatingTraining shared(session_, data_, chosen);
    RatingTraining alone(alone_, data_, chosen);
    EXPECT_EQ(shared.steps_per_pass(), 3);
    EXPECT_EQ(train(shared, 1, 7), train(alone, 1, 7));
    EXPECT_EQ(shared.state(), alone.state());
    EXPECT_EQ(shared.test_error(), alone.test_error());
  }
}

TEST_F(RatingTrainingTest, a_batch_with_fewer_ratings_than_micro_batches_is_trained) {
  data_.train.resize(3);
  RatingTraining shared(session_, data_, options(RowOptimizerKind::sgd));
  RatingTraining alone(alone_, data_, options(RowOptimizerKind::sgd));
  EXPECT_EQ(train(shared, 1, 2), train(alone, 1, 2));
  EXPECT_EQ(shared.state(), alone.state());
}

TEST_F(RatingTrainingTest, a_state_continues_bit_for_bit) {
  for (const RowOptimizerKind kind :
       {RowOptimizerKind::sgd, RowOptimizerKind::adagrad, RowOptimizerKind::rmsprop, RowOptimizerKind::adamw}) {
    const bool decays = kind == RowOptimizerKind::sgd || kind == RowOptimizerKind::adamw;
    RatingTraining whole(session_, data_, options(kind, decays ? 0.1F : 0));
    train(whole, 1, 4);
    RatingTraining resumed(session_, data_, options(kind, decays ? 0.1F : 0));
    resumed.assign(whole.state());
    EXPECT_EQ(train(resumed, 5, 8), train(whole, 5, 8));
    EXPECT_EQ(resumed.state(), whole.state());
  }
}

TEST_F(RatingTrainingTest, a_schedule_moves_the_whole_network_on_any_number_of_ranks) {
  RatingTrainingOptions scheduled = options(RowOptimizerKind::adamw, 0.1F);
  scheduled.rate = {.schedule = Schedule::cosine, .warmup_passes = 1, .steps = 8};
  RatingTraining shared(session_, data_, scheduled);
  RatingTraining alone(alone_, data_, scheduled);
  EXPECT_EQ(train(shared, 1, 4), train(alone, 1, 4));
  RatingTraining resumed(session_, data_, scheduled);
  resumed.assign(shared.state());
  EXPECT_EQ(train(shared, 5, 8), train(resumed, 5, 8));
  EXPECT_EQ(shared.state(), resumed.state());
  RatingTraining constant(session_, data_, options(RowOptimizerKind::adamw, 0.1F));
  train(constant, 1, 8);
  EXPECT_NE(shared.weights(), constant.weights());
  scheduled.rate.warmup_passes = 9;
  expect_error(Failure::usage, {"warm-up of 27 steps", "8 steps"}, [&] { RatingTraining(session_, data_, scheduled); });
}

TEST_F(RatingTrainingTest, the_model_of_a_pass_predicts_what_the_training_did) {
  RatingTraining trained(session_, data_, options(RowOptimizerKind::adamw, 0.1F));
  train(trained, 1, 5);
  RatingTraining loaded(session_, data_, options(RowOptimizerKind::adamw, 0.1F));
  const double before = loaded.test_error();
  loaded.assign_weights(trained.weights());
  EXPECT_EQ(loaded.test_error(), trained.test_error());
  EXPECT_NE(loaded.test_error(), before);
  const std::vector<float> stars = loaded.predict(data_.test);
  EXPECT_EQ(stars, trained.predict(data_.test));
  RowTable::Arrays other = trained.weights();
  other["movie.id.embedding"].pop_back();
  expect_error(Failure::bad_data, {"'movie.id.embedding'", "160"}, [&] { loaded.assign_weights(other); });
}

// Scores have the rank of the data. The error ends near the best one, far below that of the mean score.
TEST_F(RatingTrainingTest, learns_ratings_of_low_rank) {
  const RatingData data = make_synthetic_ratings({.users = 40, .movies = 30, .ratings = 4000, .rank = 2, .noise = 0.5});
  RatingTrainingOptions chosen = options(RowOptimizerKind::rmsprop);
  chosen.width = 16;
  RatingTraining training(session_, data, chosen);
  const double first = training.test_error();
  train(training, 1, 10 * training.steps_per_pass());
  EXPECT_GT(first, 5);
  EXPECT_LT(training.test_error(), 0.8);
  EXPECT_GT(training.test_error(), 0.5 * *data.best_error);
}

TEST_F(RatingTrainingTest, a_gradient_that_is_not_finite_ends_all_ranks) {
  RatingTrainingOptions chosen = options(RowOptimizerKind::sgd);
  chosen.optimizer.learning_rate = 1e38F;
  RatingTraining training(session_, data_, chosen);
  expect_error(Failure::diverged, {"step", "--lr"}, [&] { train(training, 1, 9); });
}

TEST_F(RatingTrainingTest, unusable_data_and_ranks_are_refused) {
  RatingTrainingOptions chosen = options(RowOptimizerKind::sgd);
  if (world_.size() > 1) {
    chosen.virtual_ranks = world_.size() + 1;
    EXPECT_THROW(RatingTraining(session_, data_, chosen), AgreedError);
    chosen.virtual_ranks = 4;
  }
  RatingData beyond = data_;
  beyond.test[2].user = 30;
  expect_error(Failure::bad_data, {"rating 2", "test", "user 30", "users below 30"},
               [&] { RatingTraining(session_, beyond, chosen); });
  beyond.test.clear();
  expect_error(Failure::bad_data, {"180", "0 for the test"}, [&] { RatingTraining(session_, beyond, chosen); });
}

}  // namespace lockstep::rating_training_test
