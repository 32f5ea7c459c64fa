#include "recommendation/rating_training.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "comm/same_on_ranks.hpp"
#include "nn/initialize.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t test_micro_batch = 256;

int limited_int(std::int64_t value) {
  return static_cast<int>(std::min<std::int64_t>(value, std::numeric_limits<int>::max()));
}

std::int64_t batches(const RatingData& data, std::int64_t batch) {
  return (std::ssize(data.train) + batch - 1) / batch;
}

// Collective.
RatingTrainingOptions with_schedule(const Session& session, const RatingData& data, RatingTrainingOptions options) {
  const RateOptions& rate = options.rate;
  if (rate.is_constant()) return options;
  on_all_ranks(session.world, [&] {
    LearningRate whole;
    whole.rate = static_cast<double>(options.optimizer.learning_rate);
    whole.base_batch = 0;
    whole.schedule = rate.schedule;
    whole.warmup_epochs = rate.warmup_passes;
    options.optimizer.schedule.emplace(whole, options.batch, rate.steps, batches(data, options.batch));
  });
  return options;
}

// The device, once all ranks have checked data and options.
Device& checked_device(const Session& session, const RatingData& data, const RatingTrainingOptions& options) {
  on_all_ranks(session.world, [&] {
    row_rule(options.optimizer);
    require(options.virtual_ranks % session.world.size() == 0, Failure::usage,
            "{} ranks cannot share {} virtual ranks equally. Choose a --virtual-ranks that is a multiple of {}.",
            session.world.size(), options.virtual_ranks, session.world.size());
    require(!data.train.empty() && !data.test.empty(), Failure::bad_data,
            "the data '{}' have {} ratings for training and {} for the test. Use data with at least one of each.",
            data.name, data.train.size(), data.test.size());
    require_known_ids(data);
  });
  require_same_on_ranks(session.world, {{"the ratings of '" + data.name + "'", hash_of(data)}},
                        "Use the same shards on all nodes.");
  return session.device();
}

}  // namespace

RatingTraining::RatingTraining(const Session& session, const RatingData& data, const RatingTrainingOptions& options)
    : session_(session),
      data_(data),
      options_(with_schedule(session, data, options)),
      network_(checked_device(session, data, options_), data.catalogue, options.width, options_.optimizer) {
  ParameterStore& store = network_.dense_parameters();
  all_reduce_ = make_all_reduce(session, store, {.sums = Sums::reproducible}, options.virtual_ranks);
  initialize(store, options.seed);
  network_.draw_embeddings(options.seed);
  const int terms = limited_int(options.batch * network_.terms_per_sample());
  for (const RowTable& table : network_.tables()) sums_.emplace_back(table.width(), terms);
  dense_ = std::make_unique<RowTable>("dense", 1, store.gradient_count(), options_.optimizer);
  dense_->set_values({store.values().as<float>(), static_cast<std::size_t>(store.gradient_count())});
}

std::int64_t RatingTraining::steps_per_pass() const { return batches(data_, options_.batch); }

std::int64_t RatingTraining::batch_size(std::int64_t step) const {
  const std::int64_t first = (step - 1) % steps_per_pass() * options_.batch;
  return std::min(options_.batch, std::ssize(data_.train) - first);
}

std::vector<Rating> RatingTraining::micro_batch(std::int64_t step, int virtual_rank) const {
  const SampleOrder order(std::ssize(data_.train), options_.seed, (step - 1) / steps_per_pass());
  const std::int64_t first = (step - 1) % steps_per_pass() * options_.batch;
  const std::int64_t size = batch_size(step);
  const std::int64_t begin = first + size * virtual_rank / options_.virtual_ranks;
  const std::int64_t end = first + size * (virtual_rank + 1) / options_.virtual_ranks;
  std::vector<Rating> samples;
  for (std::int64_t position = begin; position < end; ++position) {
    samples.push_back(data_.train[static_cast<std::size_t>(order.sample_at(position))]);
  }
  return samples;
}

// Leaves the micro-batch's gradients and loss in the flat gradient buffer.
void RatingTraining::compute(std::span<const Rating> samples, std::int64_t batch_size) {
  ParameterStore& store = network_.dense_parameters();
  Device& device = session_.device();
  if (samples.empty()) {
    device.flat().set(store.gradient_buffer(), 0);
    all_reduce_->report_rest();
    return;
  }
  rank_status::enter(Phase::forward);
  const std::vector<float> scores = network_.forward(samples, Mode::train);
  std::vector<float> d_scores;
  double loss = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double error = static_cast<double>(scores[i]) - static_cast<double>(score_of(samples[i].stars));
    loss += error * error / static_cast<double>(batch_size);
    d_scores.push_back(static_cast<float>(2 * error / static_cast<double>(batch_size)));
  }
  device.flat().set(store.metric_slots(ParameterStore::loss_slot), static_cast<float>(loss));
  rank_status::enter(Phase::backward);
  network_.backward(d_scores, *all_reduce_, sums_);
}

double RatingTraining::step(std::int64_t step) {
  assert(step == dense_->steps() + 1);
  const Communicator& world = session_.world;
  const int own = options_.virtual_ranks / world.size();
  for (RowSums& sums : sums_) sums.clear();
  for (int i = 0; i < own; ++i) {
    all_reduce_->begin_micro_batch(i, own);
    compute(micro_batch(step, world.rank() * own + i), batch_size(step));
  }
  all_reduce_->finish();
  for (RowSums& sums : sums_) sums.sum_over_ranks(world);

  rank_status::enter(Phase::updating);
  ParameterStore& store = network_.dense_parameters();
  const float loss = *store.metric_slots(ParameterStore::loss_slot).as<float>();
  const bool is_in_range = *store.metric_slots(ParameterStore::overflow_slot).as<float>() == 0 &&
                           std::ranges::all_of(sums_, &RowSums::is_in_range);
  if (!is_in_range) {
    throw_on_all_ranks(
        world, 0,
        Error(Failure::diverged,
              fmt::format("the loss or a gradient of step {} is not finite or too large. Try a lower --lr.", step)));
  }
  const float* const gradients = store.gradients().as<float>();
  dense_->update({{0}, {gradients, gradients + store.gradient_count()}});
  copy_dense_values();
  std::size_t table = 0;
  for (const RowSums& sums : sums_) network_.tables()[table++].update(sums.gradients());
  return static_cast<double>(loss);
}

void RatingTraining::copy_dense_values() {
  std::ranges::copy(dense_->values(), network_.dense_parameters().values().as<float>());
}

// Each micro-batch's error is rounded to a multiple of 2^-20: such sums are exact in any order.
double RatingTraining::test_error() {
  const Communicator& world = session_.world;
  rank_status::enter(Phase::testing);
  const std::int64_t count = std::ssize(data_.test);
  double sum = 0;
  std::int64_t number = 0;
  for (std::int64_t first = 0; first < count; first += test_micro_batch, ++number) {
    if (number % world.size() != world.rank()) continue;
    const auto samples = std::span(data_.test)
                             .subspan(static_cast<std::size_t>(first),
                                      static_cast<std::size_t>(std::min(test_micro_batch, count - first)));
    const std::vector<float> scores = network_.forward(samples, Mode::evaluate);
    double squares = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      squares += std::pow(static_cast<double>(scores[i]) - static_cast<double>(score_of(samples[i].stars)), 2);
    }
    sum += std::nearbyint(squares * 0x1p20);
    rank_status::mark_progress();
  }
  return world.sum(sum) * 0x1p-20 / static_cast<double>(count);
}

std::vector<float> RatingTraining::predict(std::span<const Rating> ratings) {
  std::vector<float> stars;
  for (std::size_t first = 0; first < ratings.size(); first += test_micro_batch) {
    const std::size_t count = std::min<std::size_t>(test_micro_batch, ratings.size() - first);
    for (const float score : network_.forward(ratings.subspan(first, count), Mode::evaluate)) {
      stars.push_back(stars_of(score));
    }
  }
  return stars;
}

RowTable::Arrays RatingTraining::state() const {
  RowTable::Arrays state = dense_->state();
  for (const RowTable& table : network_.tables()) state.merge(table.state());
  return state;
}

void RatingTraining::assign(const RowTable::Arrays& state) {
  dense_->assign(state);
  for (RowTable& table : network_.tables()) table.assign(state);
  copy_dense_values();
}

RowTable::Arrays RatingTraining::weights() const {
  RowTable::Arrays weights;
  for (const RowTable& table : network_.tables()) weights.emplace(table.name(), table.values());
  for (ParameterStore::Entry& entry : network_.dense_parameters().entries()) {
    weights.emplace(std::move(entry.name), std::move(entry.values));
  }
  return weights;
}

void RatingTraining::assign_weights(const RowTable::Arrays& weights) {
  const auto values_of = [&](const std::string& name, std::size_t count) -> const std::vector<float>& {
    const auto found = weights.find(name);
    require(found != weights.end() && found->second.size() == count, Failure::bad_data,
            "the model has no array '{}' of {} values. It belongs to another network or other data.", name, count);
    return found->second;
  };
  for (RowTable& table : network_.tables()) {
    RowTable plain(table.name(), table.rows(), table.width(), options_.optimizer);
    plain.set_values(values_of(table.name(), table.values().size()));
    table = std::move(plain);
  }
  ParameterStore& store = network_.dense_parameters();
  std::vector<ParameterStore::Entry> entries = store.entries();
  for (ParameterStore::Entry& entry : entries) entry.values = values_of(entry.name, entry.values.size());
  store.assign(entries);
  dense_ = std::make_unique<RowTable>("dense", 1, store.gradient_count(), options_.optimizer);
  dense_->set_values({store.values().as<float>(), static_cast<std::size_t>(store.gradient_count())});
}

}  // namespace lockstep
