#include "train/gradient_sync.hpp"

#include <algorithm>
#include <cassert>

#include "base/clock.hpp"

namespace lockstep {

namespace {

// PyTorch's first bucket is as small for the mirrored reason (c10d/reducer.hpp, kDefaultFirstBucketBytes).
constexpr std::int64_t last_bucket_bytes = 1 << 20;

// Index of the last parameter (in order of registration, so the first layers) that the last bucket takes.
int last_bucket_start(const ParameterStore& store, std::int64_t limit_bytes) {
  const std::int64_t end = store.reduced().shape()[0];
  int start = 0;
  while (start + 1 < static_cast<int>(store.parameters().size())) {
    const Parameter& candidate = store.parameters()[static_cast<std::size_t>(start) + 1];
    if ((end - candidate.offset) * size_of(DType::f32) > limit_bytes) break;
    ++start;
  }
  return start;
}

}  // namespace

GradientSync::GradientSync(const ParameterStore& store, AllReducer& reducer, std::int64_t bucket_bytes)
    : reducer_(reducer), closed_bucket_(store.parameters().size(), closes_no_bucket) {
  assert(!store.parameters().empty() && bucket_bytes > 0);
  const Tensor& reduced = store.reduced();
  const int last_start = last_bucket_start(store, std::min(bucket_bytes, last_bucket_bytes));
  std::int64_t first = 0;
  for (int index = static_cast<int>(store.parameters().size()) - 1; index > last_start; --index) {
    const Parameter& parameter = store.parameters()[static_cast<std::size_t>(index)];
    const std::int64_t end = parameter.offset + parameter.stored;
    if ((end - first) * size_of(DType::f32) < bucket_bytes && index - 1 != last_start) continue;
    // A slice reaches up to the next gradient, across the padding between the two.
    const std::int64_t next = store.parameters()[static_cast<std::size_t>(index - 1)].offset;
    closed_bucket_[static_cast<std::size_t>(index)] = static_cast<int>(buckets_.size());
    const Tensor slice = reduced.slice(first, next - first);
    buckets_.push_back({slice, slice});
    first = next;
  }
  closed_bucket_[0] = static_cast<int>(buckets_.size());
  buckets_.push_back(
      {reduced.slice(first, reduced.shape()[0] - first), reduced.slice(first, store.gradient_count() - first)});
}

void GradientSync::count_overflow(const ParameterStore& store) {
  updates_ = make_flat_updates(store.device(), {});
  overflow_ = store.tail(ParameterStore::tail_overflow);
}

void GradientSync::begin_part(int part, int parts) {
  assert(next_ == -1);  // the part before reported every gradient
  accumulate_ = part == 0 ? Accumulate::overwrite : Accumulate::add;
  last_part_ = part + 1 == parts;
  next_ = static_cast<int>(closed_bucket_.size()) - 1;
}

void GradientSync::ready(const Parameter& parameter) {
  assert(parameter.index == next_);  // one report a gradient and part, in the order of the flat array
  --next_;
  const int bucket = closed_bucket_[static_cast<std::size_t>(parameter.index)];
  if (!last_part_ || bucket == closes_no_bucket || reducer_.needs_host()) return;
  start_sum(buckets_[static_cast<std::size_t>(bucket)]);
}

void GradientSync::start_sum(const Bucket& full) {
  // The slot lies in the last bucket, which goes last.
  if (updates_ != nullptr) {
    const bool is_first = &full == &buckets_.front();
    updates_->count_non_finite(full.gradients, overflow_, is_first ? Accumulate::overwrite : Accumulate::add);
  }
  const Stopwatch watch;
  // The last bucket carries statistics and counts, which stay exact.
  if (&full == &buckets_.back()) {
    reducer_.start_sum(full.values);
  } else {
    reducer_.start_rounded_sum(full.values);
  }
  cost_.within_backward_ms += watch.milliseconds();
}

void GradientSync::finish() {
  assert(last_part_ && next_ == -1);
  if (reducer_.needs_host()) {
    for (const Bucket& full : buckets_) start_sum(full);
  }
  const Stopwatch watch;
  reducer_.wait();
  cost_.after_backward_ms += watch.milliseconds();
}

}  // namespace lockstep
