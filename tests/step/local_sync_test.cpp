// With local updates, a step's weights are what the ranks' own trainings and the outer optimizer say, and all of it can
// be saved and continued.
#include "step/local_sync.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "step/micro_batch_loader.hpp"
#include "step/named_model.hpp"
#include "step/slow_loader.hpp"
#include "step/sync_state.hpp"
#include "step/whole_step.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::local_sync_test {

constexpr SampleShape shape{16, 16, 3};
constexpr double rate = 0.05;

using Values = std::map<std::string, std::vector<float>>;

Values values_of(const std::vector<ParameterStore::Entry>& entries) {
  Values values;
  for (const ParameterStore::Entry& entry : entries) values[entry.name] = entry.values;
  return values;
}

// Largest difference of two values, relative to the largest one.
double distance(const Values& one, const Values& other) {
  double largest = 0;
  double difference = 0;
  for (const auto& [name, values] : one) {
    const std::vector<float>& others = other.at(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(values[i])));
      difference = std::max(difference, std::fabs(static_cast<double>(values[i]) - static_cast<double>(others[i])));
    }
  }
  return difference / largest;
}

Values mean_over_ranks(const Communicator& world, Values values) {
  for (auto& [name, of_tensor] : values) {
    const std::vector<double> own(of_tensor.begin(), of_tensor.end());
    std::vector<double> all(own.size() * static_cast<std::size_t>(world.size()));
    world.all_gather(own, all);
    for (std::size_t i = 0; i < own.size(); ++i) {
      double sum = 0;
      for (std::size_t at = i; at < all.size(); at += own.size()) sum += all[at];
      of_tensor[i] = static_cast<float>(sum / world.size());
    }
  }
  return values;
}

LoaderShare share_of(const Communicator& world, int updates) {
  return {micro_batch_size * world.size() * updates, world.size() * updates, world.rank() * updates, updates, updates};
}

WeightSyncOptions options_of(const OptimizerOptions& inner, const LocalUpdates& local) {
  return {{.bucket_bytes = 16 << 10}, inner, {}, false, local};
}

class LocalSyncTest : public testing::Test {
 protected:
  std::unique_ptr<WholeStep> make(const Session& session, const char* model, const WeightSyncOptions& options,
                                  const LoaderShare& share) const {
    return std::make_unique<WholeStep>(session, named_model(model, shape), share, options, 0.0F, 3);
  }
  std::unique_ptr<WholeStep> make(const char* model, const WeightSyncOptions& options) const {
    return make(session_, model, options, share_of(world_, options.local ? options.local->updates : 1));
  }
  // Steps [first, last) of the whole training; returns the losses.
  std::string train(WholeStep& step, int updates, int first, int last) const {
    MicroBatchLoader loader(session_.device(), shape, share_of(world_, updates));
    std::string losses;
    for (int skipped = 0; skipped < first * updates; ++skipped) loader.next();
    for (int index = first; index < last; ++index)
      losses += fmt::format("{} ", step.run(loader, index, rate).metrics.loss());
    return losses;
  }

  const Communicator world_{MPI_COMM_WORLD};
  const Communicator self_{MPI_COMM_SELF};
  const Session session_{world_, open_backend({.name = "cpu", .threads = 1})};
};

// The model has no batch norm, which would see smaller batches.
TEST_F(LocalSyncTest, one_update_per_step_is_an_all_reduce_within_rounding) {
  const OptimizerOptions sgd{.momentum = 0.9F, .momentum_kind = Momentum::nesterov, .weight_decay = 1e-3F};
  for (const LocalUpdates& local : {LocalUpdates{1}, LocalUpdates{1, 1, 0}}) {
    const auto reduced = make("lenet", {{}, sgd, {}});
    const auto own = make("lenet", options_of(sgd, local));
    train(*reduced, 1, 0, 50);
    train(*own, 1, 0, 50);
    EXPECT_LT(distance(values_of(own->model().store.entries()), values_of(reduced->model().store.entries())), 1e-4);
  }
}

struct Inner {
  const char* name;
  OptimizerOptions optimizer;
};

class LocalStepsTest : public LocalSyncTest, public testing::WithParamInterface<Inner> {};

// Each rank's own training, alone, of as many updates; the outer optimizer in double precision, on the host.
TEST_P(LocalStepsTest, a_step_averages_what_ranks_learn_alone) {
  constexpr int updates = 3;
  constexpr int steps = 3;
  for (const LocalUpdates& local : {LocalUpdates{updates}, LocalUpdates{updates, 0.7F, 0.9F}}) {
    const auto together = make("resnet20", options_of(GetParam().optimizer, local));
    const Session alone{self_, open_backend({.name = "cpu", .threads = 1})};
    const auto own = make(alone, "resnet20", {{}, GetParam().optimizer, {}}, {micro_batch_size, 1, 0, 1});
    MicroBatchLoader of_all(session_.device(), shape, share_of(world_, updates));
    MicroBatchLoader of_own(alone.device(), shape, share_of(world_, updates));
    Values common = values_of(own->model().store.entries());
    Values velocity;
    for (int step = 0; step < steps; ++step) {
      const Metrics metrics = together->run(of_all, step, rate).metrics;
      double loss = 0;
      for (int update = 0; update < updates; ++update) {
        loss += own->run(of_own, step * updates + update, rate).metrics.loss() / updates;
      }
      EXPECT_NEAR(metrics.loss(), world_.sum(loss) / world_.size(), 1e-4);
      EXPECT_EQ(metrics.samples, micro_batch_size * world_.size() * updates);
      const Values mean = mean_over_ranks(world_, values_of(own->model().store.entries()));
      std::vector<ParameterStore::Entry> entries = own->model().store.entries();
      for (ParameterStore::Entry& entry : entries) {
        std::vector<float>& now = common.at(entry.name);
        std::vector<float>& speed = velocity[entry.name];
        speed.resize(now.size());
        const bool is_statistic = entry.name.find("running") != std::string::npos;
        for (std::size_t i = 0; i < now.size(); ++i) {
          const float difference = now[i] - mean.at(entry.name)[i];
          speed[i] = local.outer_momentum * speed[i] + difference;
          now[i] = is_statistic ? mean.at(entry.name)[i]
                                : now[i] - local.outer_rate * (difference + local.outer_momentum * speed[i]);
        }
        entry.values = now;
      }
      EXPECT_LT(distance(values_of(together->model().store.entries()), common), 2e-4) << "step " << step;
      // Rounding must not grow from step to step.
      own->model().store.assign(together->model().store.entries());
      common = values_of(together->model().store.entries());
    }
  }
}

TEST_P(LocalStepsTest, goes_on_from_its_state_with_the_same_bits) {
  const LocalUpdates local{2, 0.7F, 0.9F};
  WeightSyncOptions options = options_of(GetParam().optimizer, local);
  options.ema = EmaRule{0.25F, 1, 1};
  const auto straight = make("resnet20", options);
  const std::string losses = train(*straight, 2, 0, 5);

  const auto first = make("resnet20", options);
  std::string parts = train(*first, 2, 0, 2);
  const TrainingTensors tensors = tensors_of(*first->own_sync);
  const auto second = make("resnet20", options);
  train(*second, 2, 0, 1);  // what is there is replaced
  second->own_sync->assign(tensors);
  second->own_sync->set_applied_steps(2);
  second->own_sync->set_own_updates(first->own_sync->own_updates());
  parts += train(*second, 2, 2, 5);
  EXPECT_EQ(parts, losses);
  EXPECT_EQ(hash_of(*second->own_sync), hash_of(*straight->own_sync));
}

INSTANTIATE_TEST_SUITE_P(, LocalStepsTest,
                         testing::Values(Inner{"sgd", {.momentum = 0.9F, .weight_decay = 1e-3F}},
                                         Inner{"sgd_clip", {.clip = {.norm = 0.5F}}},
                                         Inner{"adamw", {.kind = OptimizerKind::adamw}},
                                         Inner{"lars", {.kind = OptimizerKind::lars}},
                                         Inner{"muon", {.kind = OptimizerKind::muon}}),
                         [](const auto& test) { return std::string(test.param.name); });

// Without momentum and decay, as far as the rates say.
TEST_F(LocalSyncTest, each_update_has_its_own_learning_rate) {
  const auto moved = [&](const std::vector<double>& rates) {
    const auto step = make("lenet", options_of({.momentum = 0, .weight_decay = 0}, {3}));
    const Values before = values_of(step->model().store.entries());
    MicroBatchLoader loader(session_.device(), shape, share_of(world_, 3));
    step->start(loader, 0, rates);
    EXPECT_EQ(step->finish().learning_rate, rates.back());
    return distance(before, values_of(step->model().store.entries()));
  };
  EXPECT_EQ(moved({0, 0, 0}), 0);
  EXPECT_GT(moved({0, 0, 0.1}), 0);
  EXPECT_NE(moved({0, 0, 0.1}), moved({0, 0.1, 0}));
  EXPECT_EQ(moved({0.1}), moved({0.1, 0.1, 0.1}));
}

TEST_F(LocalSyncTest, weights_and_results_are_the_same_on_all_ranks_after_a_step) {
  const auto step = make("resnet20", options_of({}, {4}));
  const std::string losses = train(*step, 4, 0, 2);
  for (const std::string& other : world_.all_gather(losses + step->model().store.weights_hash())) {
    EXPECT_EQ(other, losses + step->model().store.weights_hash());
  }
}

// 1 / ranks and back would round them.
// Each rank's own training, alone, of as many updates as it got; the mean weighted by them, on the host.
TEST_F(LocalSyncTest, shares_by_speed_are_averaged_by_their_samples) {
  const OptimizerOptions adamw{.kind = OptimizerKind::adamw};
  constexpr int updates = 4;
  constexpr int steps = 3;
  const LoaderShare share = share_of(world_, updates);
  const auto together = make("resnet20", options_of(adamw, {updates, 1, 0, LocalShares::by_speed}));
  const Session alone{self_, open_backend({.name = "cpu", .threads = 1})};
  const auto own = make(alone, "resnet20", {{}, adamw, {}}, {micro_batch_size, 1, 0, 1});
  MicroBatchLoader of_own(alone.device(), shape, share);
  std::unique_ptr<Loader> samples = std::make_unique<MicroBatchLoader>(session_.device(), shape, share);
  if (world_.size() > 1 && world_.rank() == 0) {
    samples = std::make_unique<SlowLoader>(std::move(samples), std::chrono::milliseconds(300));
  }
  const std::vector<double> rates{0.05, 0.04, 0.03, 0.02};
  int trained = 0;
  std::vector<std::int64_t> before(static_cast<std::size_t>(world_.size()));
  for (int step = 0; step < steps; ++step) {
    together->start(*samples, step, rates);
    const Metrics metrics = together->finish().metrics;
    const SharedWork work = *together->sync().shared_work();
    std::vector<int> shares;
    for (std::size_t rank = 0; rank < before.size(); ++rank) {
      shares.push_back(
          static_cast<int>(work.micro_batches[rank] - std::exchange(before[rank], work.micro_batches[rank])));
    }
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), 0), share.total_micro_batches);
    EXPECT_EQ(metrics.samples, share.global_batch);
    const int count = shares[static_cast<std::size_t>(world_.rank())];
    const int first = std::accumulate(shares.begin(), shares.begin() + world_.rank(), 0);
    double loss = 0;
    for (int number = 0; number < count; ++number) {
      of_own.request(std::int64_t{step} * share.total_micro_batches + first + number);
      loss += own->run(of_own, trained++, rates[static_cast<std::size_t>(number * updates / count)]).metrics.loss();
    }
    EXPECT_NEAR(metrics.loss(), world_.sum(loss) / share.total_micro_batches, 1e-4);
    Values weighted = values_of(own->model().store.entries());
    for (auto& [name, values] : weighted) {
      for (float& value : values)
        value *= static_cast<float>(count * world_.size()) / static_cast<float>(share.total_micro_batches);
    }
    const Values common = mean_over_ranks(world_, weighted);
    EXPECT_LT(distance(values_of(together->model().store.entries()), common), 2e-4) << "step " << step;
    own->model().store.assign(together->model().store.entries());
  }
  const std::vector<std::int64_t> counted = together->sync().own_updates();
  if (world_.size() == 1) {
    EXPECT_EQ(counted, std::vector<std::int64_t>{steps * updates});
  } else {
    EXPECT_EQ(counted, before);
    EXPECT_LT(before[0], steps * updates) << "a slow rank makes fewer updates";
  }
}

// The moments are each rank's own, and so is their age.
TEST_F(LocalSyncTest, the_bias_correction_of_each_rank_goes_on_from_its_own_updates) {
  const auto options = options_of({.kind = OptimizerKind::adamw}, {4, 1, 0, LocalShares::by_speed});
  const auto before = make("lenet", options);
  const auto after = make("lenet", options);
  std::vector<std::int64_t> updates;
  for (int rank = 0; rank < world_.size(); ++rank) updates.push_back(10 + rank);
  after->own_sync->assign(tensors_of(*before->own_sync));
  after->own_sync->set_own_updates(updates);
  EXPECT_EQ(after->own_sync->own_updates(), updates);
  train(*after, 4, 0, 1);
  for (std::int64_t& of_rank : updates) of_rank += 4;
  EXPECT_EQ(after->own_sync->own_updates(), updates);
  after->own_sync->set_own_updates({7});
  EXPECT_EQ(after->own_sync->own_updates(), std::vector<std::int64_t>{7});
  updates.push_back(1);
  updates.push_back(1);
  expect_error(Failure::bad_data, {"damaged"}, [&] { after->own_sync->set_own_updates(updates); });
}

TEST_F(LocalSyncTest, a_rank_that_fails_ends_a_step_of_shares_by_speed) {
  const auto step = make("lenet", options_of({}, {3, 1, 0, LocalShares::by_speed}));
  class Failing final : public Loader {
   public:
    const Batch& next() override { throw Error(Failure::bad_data, "sample 7 is damaged."); }
    double waited_ms() const override { return 0; }
  };
  std::unique_ptr<Loader> samples = std::make_unique<MicroBatchLoader>(session_.device(), shape, share_of(world_, 3));
  if (world_.rank() == 0) samples = std::make_unique<Failing>();
  const std::string weights = step->model().store.weights_hash();
  expect_error(Failure::bad_data, {"sample 7"}, [&] { step->run(*samples, 0, rate); });
  EXPECT_EQ(step->model().store.weights_hash(), weights);
}

TEST_F(LocalSyncTest, a_parameter_that_does_not_learn_keeps_its_bits) {
  OptimizerOptions options{.momentum = 0.9F};
  options.rate_scales = {{"conv1.*", 0}};
  const auto step = make("resnet20", options_of(options, {2}));
  const Values before = values_of(step->model().store.entries());
  train(*step, 2, 0, 2);
  const Values after = values_of(step->model().store.entries());
  EXPECT_EQ(after.at("conv1.weight"), before.at("conv1.weight"));
  EXPECT_NE(after.at("fc.weight"), before.at("fc.weight"));
}

// The other ranks' updates are well, and the step still changes nothing.
TEST_F(LocalSyncTest, a_loss_of_one_rank_that_is_not_finite_leaves_the_weights_of_the_step_before) {
  const auto step = make("resnet20", options_of({}, {3}));
  train(*step, 3, 0, 1);
  const std::string before = step->model().store.weights_hash();
  class Poisoned final : public Loader {
   public:
    Poisoned(Device& device, const LoaderShare& share, bool is_poisoned)
        : device_(device), is_poisoned_(is_poisoned), inner_(device, shape, share) {}
    const Batch& next() override {
      const Batch& batch = inner_.next();
      if (++calls_ == 2 && is_poisoned_) {
        device_.write(std::vector<float>(static_cast<std::size_t>(batch.images.shape().count()),
                                         std::numeric_limits<float>::quiet_NaN()),
                      batch.images);
      }
      return batch;
    }
    double waited_ms() const override { return 0; }

   private:
    Device& device_;
    bool is_poisoned_;
    MicroBatchLoader inner_;
    int calls_ = 0;
  } loader(session_.device(), share_of(world_, 3), world_.rank() == world_.size() - 1);
  EXPECT_NE(step->run(loader, 1, rate).divergence, "");
  EXPECT_EQ(step->model().store.weights_hash(), before);
  EXPECT_NE(step->run(loader, 2, rate).divergence, "");
  EXPECT_EQ(step->model().store.weights_hash(), before);
}

TEST_F(LocalSyncTest, the_checkpoint_has_every_ranks_state) {
  const auto step = make("resnet20", options_of({.kind = OptimizerKind::adamw}, {2, 1, 0.5F}));
  train(*step, 2, 0, 2);
  const TemporaryFolder folder;
  const auto written = streamed(world_, *step->own_sync, folder.path() / "step.h5");
  if (!written) return;
  EXPECT_EQ(checkpoint_image(written->read), checkpoint_image(written->expected));
  const std::size_t parameters = step->model().store.parameters().size();
  EXPECT_EQ(written->read.optimizer.at("outer_velocity").size(), parameters);
  EXPECT_EQ(written->read.optimizer.at("first_moment").size(), parameters * static_cast<std::size_t>(world_.size()));
}

TEST_F(LocalSyncTest, on_another_number_of_ranks_the_inner_optimizer_starts_anew_and_says_so) {
  const WeightSyncOptions options = options_of({.kind = OptimizerKind::adamw}, {2, 0.7F, 0.9F});
  const auto before = make("resnet20", options);
  train(*before, 2, 0, 2);
  const TrainingTensors tensors = tensors_of(*before->own_sync);

  const bool is_anew = world_.size() > 1;
  const Session alone{self_, open_backend({.name = "cpu", .threads = 1})};
  const auto after = make(alone, "resnet20", options, share_of(self_, 2));
  testing::internal::CaptureStderr();
  after->own_sync->assign(tensors);
  const std::string warning = testing::internal::GetCapturedStderr();
  after->own_sync->set_applied_steps(2);
  after->own_sync->set_own_updates({4});
  EXPECT_EQ(before->own_sync->own_updates(), std::vector<std::int64_t>{4});
  EXPECT_EQ(after->own_sync->own_updates(), std::vector<std::int64_t>{is_anew ? 0 : 4});
  const TrainingTensors taken = tensors_of(*after->own_sync);
  EXPECT_EQ(weights_hash(taken.weights), weights_hash(tensors.weights));
  EXPECT_EQ(weights_hash(taken.optimizer.at("outer_velocity")), weights_hash(tensors.optimizer.at("outer_velocity")));
  EXPECT_EQ(!warning.empty(), is_anew) << warning;
  if (world_.size() == 3) expect_message(warning.substr(log::prefix().size()), {"3 ranks", "1 now"});
  for (const ParameterStore::Entry& entry : taken.optimizer.at("first_moment")) {
    const bool is_zero = std::ranges::all_of(entry.values, [](float value) { return value == 0; });
    EXPECT_EQ(is_zero, is_anew) << entry.name;
  }
}

// The bias correction of AdamW's young moments was that of old ones after a second resume.
TEST_F(LocalSyncTest, a_state_that_started_anew_goes_on_with_the_same_bits) {
  const WeightSyncOptions options = options_of({.kind = OptimizerKind::adamw}, {2, 0.7F, 0.9F});
  const auto before = make("lenet", options);
  train(*before, 2, 0, 2);
  TrainingTensors tensors = tensors_of(*before->own_sync);
  std::vector<std::int64_t> own_updates = before->own_sync->own_updates();
  const Session alone{self_, open_backend({.name = "cpu", .threads = 1})};
  MicroBatchLoader loader(alone.device(), shape, share_of(self_, 2));
  std::unique_ptr<WholeStep> stopped;
  const auto straight = make(alone, "lenet", options, share_of(self_, 2));
  straight->own_sync->assign(tensors);
  straight->own_sync->set_applied_steps(2);
  straight->own_sync->set_own_updates(own_updates);
  for (int step = 2; step < 5; ++step) straight->run(loader, step, rate);
  MicroBatchLoader same(alone.device(), shape, share_of(self_, 2));
  for (int step = 2; step < 5; ++step) {
    stopped = make(alone, "lenet", options, share_of(self_, 2));
    stopped->own_sync->assign(tensors);
    stopped->own_sync->set_applied_steps(step);
    stopped->own_sync->set_own_updates(own_updates);
    stopped->run(same, step, rate);
    tensors = tensors_of(*stopped->own_sync);
    own_updates = stopped->own_sync->own_updates();
  }
  EXPECT_EQ(hash_of(*stopped->own_sync), hash_of(*straight->own_sync));
}

// Ranks' states that were cut or mixed up were taken for those of another number of ranks.
TEST_F(LocalSyncTest, a_damaged_state_of_ranks_is_refused) {
  const auto step = make("lenet", options_of({}, {2}));
  const TrainingTensors whole = tensors_of(*step->own_sync);
  const auto refuses = [&](const char* name, const std::function<void(std::vector<ParameterStore::Entry>&)>& change) {
    SCOPED_TRACE(name);
    TrainingTensors tensors = whole;
    change(tensors.optimizer.at("velocity"));
    expect_error(Failure::bad_data, {"damaged"}, [&] { step->own_sync->assign(tensors); });
  };
  refuses("a tensor is missing", [](auto& entries) { entries.pop_back(); });
  refuses("all are missing", [](auto& entries) { entries.clear(); });
  refuses("another rank", [](auto& entries) { entries.back().name[7] = '7'; });
  refuses("no rank", [](auto& entries) { entries.front().name.erase(0, 11); });
}

TEST_F(LocalSyncTest, arrays_of_different_numbers_of_ranks_are_refused) {
  const auto step = make("lenet", options_of({.kind = OptimizerKind::adamw}, {2}));
  TrainingTensors tensors = tensors_of(*step->own_sync);
  std::vector<ParameterStore::Entry>& entries = tensors.optimizer.at("second_moment");
  const auto count = std::ssize(step->model().store.parameters());
  const std::vector<ParameterStore::Entry> first(entries.begin(), entries.begin() + count);
  for (ParameterStore::Entry entry : first) {  // of one rank more
    entry.name.replace(0, 10, fmt::format("rank{:06}", world_.size()));
    entries.push_back(std::move(entry));
  }
  expect_error(Failure::bad_data, {"damaged"}, [&] { step->own_sync->assign(tensors); });
}

TEST_F(LocalSyncTest, another_optimizers_state_is_refused) {
  const auto step = make("lenet", options_of({}, {2}));
  const auto other = make("lenet", options_of({.kind = OptimizerKind::adamw}, {2}));
  const TrainingTensors tensors = tensors_of(*other->own_sync);
  expect_error(Failure::usage, {"first_moment", "velocity"}, [&] { step->own_sync->assign(tensors); });
}

}  // namespace lockstep::local_sync_test
