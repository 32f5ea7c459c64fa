#include "recommendation/rating_training.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text/counted.hpp"
#include "comm/same_on_ranks.hpp"
#include "comm/server_all_reducer.hpp"
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

void require_possible(const RatingData& data, const RatingTrainingOptions& options, int ranks) {
  row_rule(options.optimizer);
  const int trainers = require_trainers(ranks, options.servers);
  require(options.virtual_ranks % trainers == 0, Failure::usage,
          "{} cannot share {} virtual ranks equally. Choose a --virtual-ranks that is a multiple of {}.",
          counted(trainers, options.servers > 0 ? "trainer" : "rank"), options.virtual_ranks, trainers);
  require(!data.train.empty() && !data.test.empty(), Failure::bad_data,
          "the data '{}' have {} ratings for training and {} for the test. Use data with at least one of each.",
          data.name, data.train.size(), data.test.size());
  require_known_ids(data);
}

// Collective. Once all ranks have checked data and options.
std::unique_ptr<EmbeddingTables> checked_tables(const Session& session, const RatingData& data,
                                                const RatingTrainingOptions& options) {
  const Communicator& world = session.world;
  on_all_ranks(world, [&] { require_possible(data, options, world.size()); });
  require_same_on_ranks(world, {{"the ratings of '" + data.name + "'", hash_of(data)}},
                        "Use the same shards on all nodes.");
  const int terms = limited_int(options.batch * RatingNetwork::terms_per_sample(data.catalogue));
  return make_embedding_tables(world, options.servers, RatingNetwork::table_shapes(data.catalogue, options.width),
                               options.optimizer, terms);
}

}  // namespace

RatingTraining::RatingTraining(const Session& session, const RatingData& data, const RatingTrainingOptions& options)
    : session_(session),
      data_(data),
      options_(with_schedule(session, data, options)),
      tables_(checked_tables(session, data, options_)),
      network_(session.device(), data.catalogue, options.width, *tables_) {
  ParameterStore& store = network_.dense_parameters();
  all_reduce_ = make_all_reduce(session, store, {.sums = Sums::reproducible}, options.virtual_ranks);
  initialize(store, options.seed);
  network_.draw_embeddings(options.seed);
  dense_ = std::make_unique<DistributedTable>(session.world, TableShape{"dense", 1, store.gradient_count()},
                                              options_.optimizer);
  dense_->held().set_values({store.values().as<float>(), static_cast<std::size_t>(store.gradient_count())});
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

// A server has one without ratings, so that it takes part in the sums.
std::vector<std::vector<Rating>> RatingTraining::own_micro_batches(std::int64_t step) const {
  const int rank = session_.world.rank();
  const int trainers = trainers_of(session_.world.size(), options_.servers);
  if (rank >= trainers) return {{}};
  const int count = options_.virtual_ranks / trainers;
  std::vector<std::vector<Rating>> micro_batches;
  for (int i = 0; i < count; ++i) micro_batches.push_back(micro_batch(step, rank * count + i));
  return micro_batches;
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
  network_.backward(d_scores, *all_reduce_, tables_->sums());
}

double RatingTraining::step(std::int64_t step) {
  assert(step == dense_->held().steps() + 1);
  const Communicator& world = session_.world;
  const std::vector<std::vector<Rating>> micro_batches = own_micro_batches(step);
  std::vector<Rating> samples;
  for (const std::vector<Rating>& one : micro_batches) samples.insert(samples.end(), one.begin(), one.end());
  rank_status::enter(Phase::gathering_weights);
  network_.prefetch(samples);
  tables_->clear_sums();
  const auto count = static_cast<int>(micro_batches.size());
  for (int i = 0; i < count; ++i) {
    all_reduce_->begin_micro_batch(i, count);
    compute(micro_batches[static_cast<std::size_t>(i)], batch_size(step));
  }
  all_reduce_->finish();
  const bool are_rows_in_range = tables_->sum_over_ranks();

  rank_status::enter(Phase::updating);
  ParameterStore& store = network_.dense_parameters();
  const float loss = *store.metric_slots(ParameterStore::loss_slot).as<float>();
  const bool is_in_range = are_rows_in_range && *store.metric_slots(ParameterStore::overflow_slot).as<float>() == 0;
  if (!is_in_range) {
    throw_on_all_ranks(
        world, 0,
        Error(Failure::diverged,
              fmt::format("the loss or a gradient of step {} is not finite or too large. Try a lower --lr.", step)));
  }
  const float* const gradients = store.gradients().as<float>();
  dense_->held().update({{0}, {gradients, gradients + store.gradient_count()}});
  copy_dense_values();
  tables_->update();
  return static_cast<double>(loss);
}

void RatingTraining::copy_dense_values() {
  std::ranges::copy(dense_->held().values(), network_.dense_parameters().values().as<float>());
}

// Collective. The ranks, servers included, compute micro-batches in turn. Passes each of this rank's with its scores to
// `take`.
template <class Take>
void RatingTraining::evaluate(std::span<const Rating> ratings, const Take& take) {
  const Communicator& world = session_.world;
  const auto count = std::ssize(ratings);
  const Phase before = rank_status::record().phase;
  for (std::int64_t first_of_all = 0; first_of_all < count; first_of_all += world.size() * test_micro_batch) {
    const std::int64_t first = std::min(first_of_all + world.rank() * test_micro_batch, count);
    const std::span<const Rating> samples = ratings.subspan(
        static_cast<std::size_t>(first), static_cast<std::size_t>(std::min(test_micro_batch, count - first)));
    rank_status::enter(Phase::gathering_weights);
    network_.prefetch(samples);
    rank_status::enter(Phase::testing);
    if (!samples.empty()) take(samples, network_.forward(samples, Mode::evaluate));
  }
  rank_status::enter(before);
}

// Each micro-batch's error is rounded to a multiple of 2^-20: such sums are exact in any order.
double RatingTraining::test_error() {
  double sum = 0;
  evaluate(data_.test, [&](std::span<const Rating> samples, const std::vector<float>& scores) {
    double squares = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      squares += std::pow(static_cast<double>(scores[i]) - static_cast<double>(score_of(samples[i].stars)), 2);
    }
    sum += std::nearbyint(squares * 0x1p20);
  });
  return session_.world.sum(sum) * 0x1p-20 / static_cast<double>(std::ssize(data_.test));
}

std::vector<float> RatingTraining::predict(std::span<const Rating> ratings) {
  std::string own;
  evaluate(ratings, [&](std::span<const Rating> /*samples*/, const std::vector<float>& scores) {
    for (const float score : scores) append_numbers<float>(own, std::vector<float>{stars_of(score)});
  });
  const std::vector<std::string> of_ranks = session_.world.all_gather(own);
  std::vector<std::string_view> rests(of_ranks.begin(), of_ranks.end());
  std::vector<float> stars(ratings.size());
  std::size_t rank = 0;
  for (std::size_t first = 0; first < stars.size(); first += test_micro_batch) {
    std::string_view& rest = rests[rank];
    const std::size_t bytes = std::min<std::size_t>(test_micro_batch, stars.size() - first) * sizeof(float);
    assert(bytes <= rest.size());
    std::memcpy(stars.data() + first, rest.data(), bytes);
    rest.remove_prefix(bytes);
    rank = (rank + 1) % rests.size();
  }
  return stars;
}

std::vector<StreamedArray> RatingTraining::state() const {
  std::vector<StreamedArray> state = dense_->state();
  for (const DistributedTable& table : tables_->tables()) {
    for (StreamedArray& array : table.state()) state.push_back(std::move(array));
  }
  return state;
}

void RatingTraining::assign(const RowTable::Arrays& state) {
  dense_->assign(state);
  for (DistributedTable& table : tables_->tables()) table.assign(state);
  copy_dense_values();
}

std::vector<StreamedArray> RatingTraining::weights() const {
  std::vector<StreamedArray> weights;
  for (const DistributedTable& table : tables_->tables()) weights.push_back(table.values());
  for (const ParameterStore::Entry& entry : network_.dense_parameters().entries()) {
    weights.push_back(streamed_array(entry.name, entry.values));
  }
  return weights;
}

void RatingTraining::assign_weights(const RowTable::Arrays& weights) {
  const Communicator& world = session_.world;
  ParameterStore& store = network_.dense_parameters();
  std::vector<ParameterStore::Entry> entries = store.entries();
  const auto values_of = [&](const std::string& name, std::int64_t count) -> const std::vector<float>& {
    const auto found = weights.find(name);
    require(found != weights.end() && std::ssize(found->second) == count, Failure::bad_data,
            "the model has no array '{}' of {} values. It belongs to another network or other data.", name, count);
    return found->second;
  };
  on_rank_0(world, [&] {
    for (const DistributedTable& table : tables_->tables()) {
      values_of(table.held().name(), table.held().rows() * table.held().width());
    }
    for (ParameterStore::Entry& entry : entries) entry.values = values_of(entry.name, std::ssize(entry.values));
  });
  for (DistributedTable& table : tables_->tables()) {
    table.assign_values(world.rank() == 0 ? weights.at(table.held().name()) : std::span<const float>());
  }
  for (ParameterStore::Entry& entry : entries) world.broadcast(std::as_writable_bytes(std::span(entry.values)), 0);
  store.assign(entries);
  dense_->assign_values({store.values().as<float>(), static_cast<std::size_t>(store.gradient_count())});
}

}  // namespace lockstep
