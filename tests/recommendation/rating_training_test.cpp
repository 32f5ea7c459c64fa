#include "recommendation/rating_training.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "comm/agreed_error.hpp"
#include "support/messages.hpp"
#include "support/streamed_arrays.hpp"

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
            .virtual_ranks = 60,  // ranks of the tests divide it
            .optimizer = {.kind = kind, .learning_rate = 0.01F, .weight_decay = decay}};
  }

  static RatingTrainingOptions scheduled_options() {
    RatingTrainingOptions scheduled = options(RowOptimizerKind::adamw, 0.1F);
    scheduled.rate = {.schedule = Schedule::cosine, .warmup_passes = 1, .steps = 8};
    return scheduled;
  }
  // Collective. The second one is that of one rank, or of all, like the first one.
  void expect_same_state(const RatingTraining& training, const RatingTraining& expected) const {
    const RowTable::Arrays state = test::read_all(training.state());
    const RowTable::Arrays weights = test::read_all(training.weights());
    const RowTable::Arrays expected_state = test::read_all(expected.state());
    const RowTable::Arrays expected_weights = test::read_all(expected.weights());
    if (world_.rank() != 0) return;
    EXPECT_EQ(state, expected_state);
    EXPECT_EQ(weights, expected_weights);
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
    expect_same_state(shared, alone);
    EXPECT_EQ(shared.test_error(), alone.test_error());
  }
}

// Up to three servers, and up to four trainers.
TEST_F(RatingTrainingTest, weights_do_not_depend_on_the_number_of_servers) {
  std::vector<RatingTrainingOptions> all{options(RowOptimizerKind::sgd, 0.1F), options(RowOptimizerKind::adagrad),
                                         options(RowOptimizerKind::rmsprop), options(RowOptimizerKind::adamw, 0.1F),
                                         scheduled_options()};
  all.push_back(scheduled_options());
  all.back().optimizer.kind = RowOptimizerKind::sgd;
  for (RatingTrainingOptions& chosen : all) {
    RatingTraining alone(alone_, data_, chosen);
    const std::vector<double> losses = train(alone, 1, 7);
    const std::vector<float> stars = alone.predict(data_.test);
    for (chosen.servers = 1; chosen.servers < std::min(4, world_.size()); ++chosen.servers) {
      RatingTraining served(session_, data_, chosen);
      EXPECT_EQ(train(served, 1, 7), losses);
      expect_same_state(served, alone);
      EXPECT_EQ(served.test_error(), alone.test_error());
      EXPECT_EQ(served.predict(data_.test), stars);
    }
  }
}

// A training goes on with a server, then with another number of them, then without.
TEST_F(RatingTrainingTest, a_resume_may_change_the_number_of_servers) {
  RatingTrainingOptions chosen = scheduled_options();
  RatingTraining alone(alone_, data_, chosen);
  train(alone, 1, 8);
  RowTable::Arrays state;
  for (std::int64_t step = 1; step <= 7; step += 2) {
    chosen.servers = std::max(0, world_.size() - static_cast<int>(step));
    if (step == 7) chosen.servers = 0;
    RatingTraining training(session_, data_, chosen);
    if (step > 1) training.assign(state);
    train(training, step, step + 1);
    state = test::read_all(training.state());
  }
  const RowTable::Arrays expected = test::read_all(alone.state());
  if (world_.rank() == 0) {
    EXPECT_EQ(state, expected);
  }
}

TEST_F(RatingTrainingTest, a_batch_with_fewer_ratings_than_micro_batches_is_trained) {
  data_.train.resize(3);
  RatingTraining shared(session_, data_, options(RowOptimizerKind::sgd));
  RatingTraining alone(alone_, data_, options(RowOptimizerKind::sgd));
  EXPECT_EQ(train(shared, 1, 2), train(alone, 1, 2));
  expect_same_state(shared, alone);
}

TEST_F(RatingTrainingTest, a_state_continues_bit_for_bit) {
  for (const RowOptimizerKind kind :
       {RowOptimizerKind::sgd, RowOptimizerKind::adagrad, RowOptimizerKind::rmsprop, RowOptimizerKind::adamw}) {
    const bool decays = kind == RowOptimizerKind::sgd || kind == RowOptimizerKind::adamw;
    RatingTraining whole(session_, data_, options(kind, decays ? 0.1F : 0));
    train(whole, 1, 4);
    RatingTraining resumed(session_, data_, options(kind, decays ? 0.1F : 0));
    resumed.assign(test::read_all(whole.state()));
    EXPECT_EQ(train(resumed, 5, 8), train(whole, 5, 8));
    expect_same_state(resumed, whole);
  }
}

TEST_F(RatingTrainingTest, a_schedule_moves_the_whole_network_on_any_number_of_ranks) {
  RatingTrainingOptions scheduled = scheduled_options();
  RatingTraining shared(session_, data_, scheduled);
  RatingTraining alone(alone_, data_, scheduled);
  EXPECT_EQ(train(shared, 1, 4), train(alone, 1, 4));
  RatingTraining resumed(session_, data_, scheduled);
  resumed.assign(test::read_all(shared.state()));
  EXPECT_EQ(train(shared, 5, 8), train(resumed, 5, 8));
  expect_same_state(shared, resumed);
  RatingTraining constant(session_, data_, options(RowOptimizerKind::adamw, 0.1F));
  train(constant, 1, 8);
  const RowTable::Arrays of_schedule = test::read_all(shared.weights());
  const RowTable::Arrays of_constant = test::read_all(constant.weights());
  if (world_.rank() == 0) {
    EXPECT_NE(of_schedule, of_constant);
  }
  scheduled.rate.warmup_passes = 9;
  expect_error(Failure::usage, {"warm-up of 27 steps", "8 steps"}, [&] { RatingTraining(session_, data_, scheduled); });
}

TEST_F(RatingTrainingTest, the_model_of_a_pass_predicts_what_the_training_did) {
  RatingTraining trained(session_, data_, options(RowOptimizerKind::adamw, 0.1F));
  train(trained, 1, 5);
  const RowTable::Arrays weights = test::read_all(trained.weights());
  RatingTraining loaded(session_, data_, options(RowOptimizerKind::adamw, 0.1F));
  const double before = loaded.test_error();
  loaded.assign_weights(weights);
  EXPECT_EQ(loaded.test_error(), trained.test_error());
  EXPECT_NE(loaded.test_error(), before);
  const std::vector<float> stars = loaded.predict(data_.test);
  EXPECT_EQ(stars, trained.predict(data_.test));
  RowTable::Arrays other = weights;
  other["movie.id.embedding"].pop_back();
  expect_error(Failure::bad_data, {"'movie.id.embedding'", "160"}, [&] { loaded.assign_weights(other); });
}

// Scores have the rank of the data. The error ends near the best one, far below that of the mean score.
TEST_F(RatingTrainingTest, learns_ratings_of_low_rank) {
  const RatingData data = make_synthetic_ratings({.users = 40, .movies = 30, .ratings = 4000, .rank = 2, .noise = 0.5});
  RatingTrainingOptions chosen = options(RowOptimizerKind::rmsprop);
  chosen.width = 16;
  chosen.virtual_ranks = 4 * world_.size();
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
    chosen.virtual_ranks = 60;
  }
  for (const int more : {0, 3}) {
    chosen.servers = world_.size() + more;
    EXPECT_THROW(RatingTraining(session_, data_, chosen), AgreedError);
  }
  chosen.servers = 0;
  RatingData beyond = data_;
  beyond.test[2].user = 30;
  expect_error(Failure::bad_data, {"rating 2", "test", "user 30", "users below 30"},
               [&] { RatingTraining(session_, beyond, chosen); });
  beyond.test.clear();
  expect_error(Failure::bad_data, {"180", "0 for the test"}, [&] { RatingTraining(session_, beyond, chosen); });
}

}  // namespace lockstep::rating_training_test
