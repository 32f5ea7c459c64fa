#include "step/all_reduce.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "comm/power_sgd_reducer.hpp"
#include "comm/server_all_reducer.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "step/bucket_size.hpp"

namespace lockstep {

namespace {

// PyTorch's first bucket is small for the mirrored reason (c10d/reducer.hpp, kDefaultFirstBucketBytes).
constexpr std::int64_t last_bucket_bytes = 1 << 20;

// Index of the last parameter in the last bucket. Indices follow registration, so low indices are the first layers.
int last_bucket_start(const ParameterStore& store, std::int64_t limit_bytes) {
  const std::int64_t end = store.gradient_buffer().shape()[0];
  int start = 0;
  while (start + 1 < static_cast<int>(store.parameters().size())) {
    const Parameter& candidate = store.parameters()[static_cast<std::size_t>(start) + 1];
    if ((end - candidate.offset) * size_of(DType::f32) > limit_bytes) break;
    ++start;
  }
  return start;
}

// The weights that PowerSGD of this rank compresses. The first layer's is in the last bucket, which is summed exactly.
std::vector<FlatMatrix> compressed_matrices(const ParameterStore& store, const LowRankPasses& passes, int rank) {
  std::vector<FlatMatrix> matrices;
  for (const Parameter& parameter : store.parameters()) {
    const std::optional<FlatMatrix> matrix = passes.matrix_of(parameter.kind, parameter.dims, parameter.offset);
    const bool has_room = matrix && std::ranges::min(parameter.dims[0], parameter.dims[1]) >= rank;
    if (parameter.index > 0 && has_room && is_compressible(*matrix, rank)) matrices.push_back(*matrix);
  }
  std::ranges::sort(matrices, {}, &FlatMatrix::first);
  return matrices;
}

void require_compresses(Device& device, DType wire) {
  require(device.flat().low_rank() != nullptr, Failure::usage,
          "--compress computes on CPUs only. Use --device cpu, or leave out --compress.");
  require_full_wire(wire);
}

void require_servers_fit(const Device& device, const AllReduceOptions& options) {
  require(device.steps_ahead() == 0, Failure::usage,
          "--sync ps computes on CPUs only. Use --device cpu, or --sync all-reduce.");
  require_full_wire(options.wire);
}

}  // namespace

AllReduce::AllReduce(const ParameterStore& store, std::unique_ptr<AllReducer> reducer, std::int64_t bucket_bytes,
                     std::optional<ReproducibleSums> reproducible, Sharding sharding)
    : store_(store),
      reducer_(std::move(reducer)),
      shown_marks_(reducer_->marks()),
      flat_(store.device().flat()),
      reproducible_(std::move(reproducible)),
      closed_bucket_(store.parameters().size(), closes_no_bucket) {
  assert(!store.parameters().empty() && bucket_bytes > 0);
  if (reproducible_) watch_overflows(reproducible_->form.limit);
  const Tensor& reduced = store.gradient_buffer();
  const std::int64_t last_bytes = reducer_->compresses() ? 0 : std::min(bucket_bytes, last_bucket_bytes);
  const int last_start = last_bucket_start(store, last_bytes);
  const bool is_scattered = sharding == Sharding::sums_and_updates;
  std::int64_t first = 0;
  const auto add_bucket = [&](std::int64_t end, std::int64_t counted_end, bool scattered) {
    const std::int64_t count = end - first;
    buckets_.push_back({reduced.slice(first, count),
                        reduced.slice(first, std::max(counted_end - first, std::int64_t{0})), sums_of(first, count),
                        scattered});
    const std::int64_t gradients = std::min(end, store.gradient_count()) - first;
    if (gradients > 0) gathered_.push_back({first, gradients});
    first = end;
  };
  for (int index = static_cast<int>(store.parameters().size()) - 1; index > last_start; --index) {
    const Parameter& parameter = store.parameters()[static_cast<std::size_t>(index)];
    const std::int64_t end = parameter.offset + parameter.stored;
    if ((end - first) * size_of(DType::f32) < bucket_bytes && index - 1 != last_start) continue;
    // A slice extends to the next gradient, including the padding between the two.
    const std::int64_t next = store.parameters()[static_cast<std::size_t>(index - 1)].offset;
    closed_bucket_[static_cast<std::size_t>(index)] = static_cast<int>(buckets_.size());
    add_bucket(next, next, is_scattered);
  }
  closed_bucket_[0] = static_cast<int>(buckets_.size());
  const std::int64_t overflow_slot =
      reduced.shape()[0] - ParameterStore::metric_slot_count + ParameterStore::overflow_slot;
  if (is_scattered) add_bucket(store.gradient_count(), store.gradient_count(), true);
  add_bucket(reduced.shape()[0], reproducible_ ? overflow_slot : store.gradient_count(), false);
}

Tensor AllReduce::sums_of(std::int64_t first, std::int64_t count) const {
  return reproducible_ ? reproducible_->sums.slice(first, count) : store_.gradient_buffer().slice(first, count);
}

void AllReduce::count_overflows() {
  if (!overflows_) watch_overflows(std::numeric_limits<float>::infinity());
}

void AllReduce::watch_overflows(float limit) {
  overflow_limit_ = limit;
  overflows_ = store_.device().make_persistent(flat_.overflow_counters(), DType::f32);
}

Accumulate AllReduce::accumulate() const {
  return micro_batch_ == 0 || reproducible_ ? Accumulate::overwrite : Accumulate::add;
}

void AllReduce::begin_micro_batch(int micro_batch, int micro_batches) {
  assert(next_ == -1);  // the previous micro-batch reported every gradient
  micro_batch_ = micro_batch;
  last_micro_batch_ = micro_batch + 1 == micro_batches;
  next_ = static_cast<int>(closed_bucket_.size()) - 1;
}

void AllReduce::ready(const Parameter& parameter) {
  assert(parameter.index == next_);  // each gradient is reported once per micro-batch, in the order of the flat array
  --next_;
  rank_status::mark_progress();
  const int bucket = closed_bucket_[static_cast<std::size_t>(parameter.index)];
  if (bucket == closes_no_bucket) return;
  const std::size_t end = parameter.index == 0 ? buckets_.size() : static_cast<std::size_t>(bucket) + 1;
  for (const Bucket& full : std::span(buckets_).subspan(0, end).subspan(static_cast<std::size_t>(bucket))) {
    if (last_micro_batch_ || reproducible_) complete(full);
    if (last_micro_batch_ && !reducer_->needs_host()) start_sum(full);
  }
}

void AllReduce::report_rest() {
  while (next_ >= 0) ready(store_.parameters()[static_cast<std::size_t>(next_)]);
}

// Called once for all micro-batches, or once per micro-batch with reproducible sums.
void AllReduce::complete(const Bucket& full) {
  if (overflows_ && full.counted.shape().count() > 0) {
    const Accumulate into = &full == &buckets_.front() ? Accumulate::overwrite : Accumulate::add;
    flat_.count_overflows(full.counted, overflow_limit_, overflows_, into);
  }
  // The slot is in the last bucket, which is completed last.
  if (overflows_ && &full == &buckets_.back()) {
    flat_.sum_overflows(overflows_, store_.metric_slots(ParameterStore::overflow_slot));
  }
  if (!reproducible_) return;
  flat_.sum_fixed(full.values, reproducible_->form, full.sums,
                  micro_batch_ == 0 ? Accumulate::overwrite : Accumulate::add);
}

void AllReduce::start_sum(const Bucket& full) {
  const Stopwatch watch;
  rank_status::begin_sum();
  // The last bucket holds statistics and counts, which are always summed at full precision.
  if (full.is_scattered) {
    reproducible_ ? reducer_->start_reduce_scatter(full.sums) : reducer_->start_rounded_reduce_scatter(full.sums);
  } else if (reproducible_ || &full == &buckets_.back()) {
    reducer_->start_sum(full.sums);
  } else {
    reducer_->start_rounded_sum(full.sums);
  }
  rank_status::end_sum();
  cost_.within_backward_ms += watch.milliseconds();
}

void AllReduce::finish() {
  assert(last_micro_batch_ && next_ == -1);
  if (reducer_->needs_host()) {
    for (const Bucket& full : buckets_) start_sum(full);
  }
  rank_status::enter(Phase::reducing);
  const Stopwatch watch;
  reducer_->wait();
  cost_.after_backward_ms += watch.milliseconds();
  if (reproducible_) flat_.values_of_fixed(reproducible_->sums, store_.gradient_buffer());
}

void AllReduce::sum_statistics() {
  rank_status::enter(Phase::reducing);
  const Stopwatch watch;
  const Tensor& all = store_.gradient_buffer();
  reducer_->start_sum(all.slice(store_.gradient_count(), all.shape().count() - store_.gradient_count()));
  reducer_->wait();
  cost_.after_backward_ms += watch.milliseconds();
}

// Names what changes bits: checkpoints compare it.
std::string AllReduce::description() const {
  const bool is_same = !buckets_[0].is_scattered || reproducible_ || reducer_->scatters_same_bits();
  return reducer_->description() + (is_same ? "" : ", reduce-scatter");
}

std::vector<FlatPart> AllReduce::parts_of(int rank) const {
  std::vector<FlatPart> parts;
  for (const FlatPart& bucket : gathered_) {
    const SlicePart part = reducer_->part_of(store_.gradient_buffer().slice(bucket.first, bucket.count), rank);
    if (part.count > 0) parts.push_back({bucket.first + part.first, part.count});
  }
  return parts;
}

void AllReduce::gather(const Tensor& flat) {
  rank_status::enter(Phase::gathering_weights);
  const Stopwatch watch;
  for (const FlatPart& bucket : gathered_) {
    rank_status::begin_sum();
    reducer_->start_all_gather(flat.slice(bucket.first, bucket.count));
    rank_status::end_sum();
  }
  reducer_->wait();
  cost_.after_backward_ms += watch.milliseconds();
}

Tensor AllReduce::scratch() const {
  if (!reproducible_) return store_.gradients();
  const std::int64_t count = store_.gradient_count();
  return {reproducible_->sums.data(), count * size_of(DType::f32), Shape{count}, DType::f32, Layout::plain};
}

std::unique_ptr<AllReduce> make_all_reduce(const Session& session, ParameterStore& store,
                                           const AllReduceOptions& options, int total_micro_batches,
                                           Sharding sharding) {
  rank_status::enter(Phase::meeting);
  Device& device = session.device();
  const std::int64_t count = store.gradient_buffer_count();
  const bool is_reproducible = options.sums == Sums::reproducible;
  const DType summed = is_reproducible ? DType::i64 : DType::f32;
  const std::int64_t gathered = sharding == Sharding::none ? 0 : store.gradient_count();
  const std::int64_t compressed =
      options.powersgd_rank == 0 ? 0 : power_sgd_count(count, std::ssize(store.parameters()));
  const std::int64_t bytes = count * size_of(summed) + (gathered + compressed) * size_of(DType::f32);
  std::unique_ptr<AllReducer> reducer;
  if (options.powersgd_rank > 0) on_all_ranks(session.world, [&] { require_compresses(device, options.wire); });
  if (options.servers > 0) {
    on_all_ranks(session.world, [&] { require_servers_fit(device, options); });
    reducer = make_server_all_reducer(session.world, options.servers);
  } else {
    reducer = session.backend->make_reducer(options.reducer, session.world, bytes, options.wire);
  }
  const Tensor sums = reducer->allocate(count, summed);
  store.allocate(is_reproducible ? device.make_persistent(count, DType::f32) : sums,
                 gathered > 0 ? reducer->allocate(gathered) : Tensor());
  const std::int64_t bucket_bytes = options.bucket_bytes > 0
                                        ? options.bucket_bytes
                                        : choose_bucket_bytes(measure_reduction(*reducer, session.world, device, sums));
  if (options.powersgd_rank > 0) {
    LowRankPasses& passes = *device.flat().low_rank();
    std::vector<FlatMatrix> matrices = compressed_matrices(store, passes, options.powersgd_rank);
    if (matrices.empty() && session.world.rank() == 0) {
      log::warning("--compress powersgd:{} makes no weight of this network smaller. Choose a lower rank.",
                   options.powersgd_rank);
    }
    reducer = make_power_sgd_reducer(std::move(reducer), session.world, sums,
                                     {passes, std::move(matrices), options.powersgd_rank});
  }
  std::optional<ReproducibleSums> reproducible;
  if (is_reproducible) reproducible = {sums, fixed_point_for(total_micro_batches)};
  return std::make_unique<AllReduce>(store, std::move(reducer), bucket_bytes, std::move(reproducible), sharding);
}

}  // namespace lockstep
