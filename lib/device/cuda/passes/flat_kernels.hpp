// Loop bodies for the flat arrays of a model: parameters, gradients, statistics. Arrays start at multiples of 16 bytes.
// A thread handles four elements, or the rest at the end. Sums of squares have two stages: sum_lanes threads per piece
// of a run, then AddGroups. The shape fixes all splits.
#pragma once

#include <cmath>

#include "device/cuda/norm/channel_sums.hpp"
#include "device/flat/ema_rule.hpp"
#include "device/flat/fixed_point.hpp"
#include "device/flat/step_record.hpp"
#include "device/flat/update_rule.hpp"

namespace lockstep::cuda {

constexpr std::int64_t quad = 4;  // elements per thread

LOCKSTEP_HOST_DEVICE constexpr std::int64_t quads(std::int64_t count) { return (count + quad - 1) / quad; }

struct Float4 {
  float at[quad];
};

// Elements [4 * index, 4 * index + 4) of `count`; zero past the end.
LOCKSTEP_HOST_DEVICE inline Float4 load_float4(const float* array, std::int64_t index, std::int64_t count) {
  Float4 values{};
  if ((index + 1) * quad <= count) {
    const FloatWords words = reinterpret_cast<const FloatWords*>(array)[index];
    for (int i = 0; i < quad; ++i) values.at[i] = words.at[i];
  } else {
    for (int i = 0; i < quad; ++i) {
      if (index * quad + i < count) values.at[i] = array[index * quad + i];
    }
  }
  return values;
}

LOCKSTEP_HOST_DEVICE inline void store_float4(const Float4& values, float* array, std::int64_t index,
                                              std::int64_t count) {
  if ((index + 1) * quad <= count) {
    FloatWords words;
    for (int i = 0; i < quad; ++i) words.at[i] = values.at[i];
    reinterpret_cast<FloatWords*>(array)[index] = words;
  } else {
    for (int i = 0; i < quad; ++i) {
      if (index * quad + i < count) array[index * quad + i] = values.at[i];
    }
  }
}

LOCKSTEP_HOST_DEVICE inline std::uint16_t narrow_to(DType dtype, float value) {
  return dtype == DType::f16 ? to_f16(value) : to_bf16(value);
}

// Stores four 16-bit elements, f16 or bf16. `array` may be null.
LOCKSTEP_HOST_DEVICE inline void store_narrow(const Float4& values, DType dtype, std::uint16_t* array,
                                              std::int64_t index, std::int64_t count) {
  if (array == nullptr) return;
  if ((index + 1) * quad <= count) {
    ByteWords words;
    for (int i = 0; i < 2; ++i) {
      words.at[i] = static_cast<std::uint32_t>(narrow_to(dtype, values.at[2 * i])) |
                    static_cast<std::uint32_t>(narrow_to(dtype, values.at[2 * i + 1])) << 16;
    }
    reinterpret_cast<ByteWords*>(array)[index] = words;
  } else {
    for (int i = 0; i < quad; ++i) {
      if (index * quad + i < count) array[index * quad + i] = narrow_to(dtype, values.at[i]);
    }
  }
}

// A run in GPU memory. Runs are contiguous, start at multiples of four, and the first one starts at 0.
struct PlacedRun {
  UpdateRun run;
  std::int64_t first_piece;  // pieces are numbered across all runs
};

constexpr std::int64_t sum_lanes = 256;  // threads per piece; each sums every sum_lanes-th group of four
constexpr std::int64_t sum_quads = 32;   // groups of four per thread, at most
constexpr std::int64_t piece_quads = sum_lanes * sum_quads;

LOCKSTEP_HOST_DEVICE constexpr std::int64_t pieces_of(std::int64_t count) {
  return (quads(count) + piece_quads - 1) / piece_quads;
}

// The last of `count` entries with begin(entry) <= place. Requires begin(0) <= place.
template <typename Begin>
LOCKSTEP_HOST_DEVICE std::int64_t entry_at(std::int64_t place, std::int64_t count, const Begin& begin) {
  std::int64_t low = 0;  // the entry is in [low, high)
  std::int64_t high = count;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    if (begin(middle) <= place) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// A step's values in device memory.
struct StepPlaces {
  const float* learning_rate;
  const float* gradient_scale;
  const float* applied_steps;
  const float* skip;  // nothing changes unless this is 0

  LOCKSTEP_HOST_DEVICE StepRates rates() const { return {*learning_rate, *gradient_scale, *applied_steps}; }
};

// Sums of squares: sum_lanes threads (lanes) per piece.
struct SumSquares {
  const float* array;
  const PlacedRun* runs;
  std::int64_t run_count;
  double* sums;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [piece, lane] = divide(index, sum_lanes);
    const PlacedRun& placed =
        runs[entry_at(piece, run_count, [this](std::int64_t entry) { return runs[entry].first_piece; })];
    const float* const from = array + placed.run.first;
    const std::int64_t first = (piece - placed.first_piece) * piece_quads + lane;
    double sum = 0;
    for (std::int64_t i = 0; i < sum_quads; ++i) {
      const Float4 four = load_float4(from, first + i * sum_lanes, placed.run.count);
      for (const float value : four.at) sum += static_cast<double>(value) * static_cast<double>(value);
    }
    sums[index] = sum;
  }
};

// to[i] = sum of group i of `from`. One thread per sum.
struct AddGroups {
  const double* from;
  std::int64_t count;
  std::int64_t group;
  double* to;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t end = (index + 1) * group < count ? (index + 1) * group : count;
    double sum = 0;
    for (std::int64_t i = index * group; i < end; ++i) sum += from[i];
    to[index] = sum;
  }
};

// Computes the rates of a run before the update. One thread per run. Sums of pieces are null if the rule needs none.
template <typename Rule>
struct FindRates {
  Rule rule;
  StepPlaces step;
  const PlacedRun* runs;
  std::int64_t run_count;
  std::int64_t piece_count;
  const double* values;
  const double* gradients;
  typename Rule::Rates* rates;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    RunSquares squares;
    if (values != nullptr) {
      const std::int64_t end = index + 1 < run_count ? runs[index + 1].first_piece : piece_count;
      for (std::int64_t piece = runs[index].first_piece; piece < end; ++piece) {
        squares.values += values[piece];
        squares.gradients += gradients[piece];
      }
    }
    rates[index] = rule.rates(step.rates(), runs[index].run, squares);
  }
};

// An optimizer's update of a part of flat arrays. All pointers are to the part's first element. One thread per four
// elements.
template <typename Rule>
struct Update {
  Rule rule;
  std::int64_t first;  // of the part, in the runs
  const float* gradients;
  float* values;
  float* states[Rule::states];
  std::uint16_t* narrow;  // half-precision copy of the values, or null
  DType narrow_dtype;
  std::int64_t count;
  const PlacedRun* runs;
  std::int64_t run_count;
  const typename Rule::Rates* rates;  // per run; unused if rates are copied
  StepPlaces step;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    if (*step.skip != 0) return;
    const typename Rule::Rates its_rates = rates_at(first + index * quad);
    const Float4 g = load_float4(gradients, index, count);
    Float4 w = load_float4(values, index, count);
    Float4 s[Rule::states];
    for (int k = 0; k < Rule::states; ++k) s[k] = load_float4(states[k], index, count);
    for (int i = 0; i < quad; ++i) {
      float state[Rule::states];
      for (int k = 0; k < Rule::states; ++k) state[k] = s[k].at[i];
      rule(its_rates, g.at[i], state, w.at[i]);
      for (int k = 0; k < Rule::states; ++k) s[k].at[i] = state[k];
    }
    for (int k = 0; k < Rule::states; ++k) store_float4(s[k], states[k], index, count);
    store_float4(w, values, index, count);
    store_narrow(w, narrow_dtype, narrow, index, count);
  }

  LOCKSTEP_HOST_DEVICE typename Rule::Rates rates_at(std::int64_t element) const {
    const std::int64_t run = entry_at(element, run_count, [this](std::int64_t entry) { return runs[entry].run.first; });
    if constexpr (Rule::rates_are == RatesAre::copied) {
      return rule.rates(step.rates(), runs[run].run, {});
    } else {
      return rates[run];
    }
  }
};

// Stores an entry of a table, for a later pass on the stream. Runs for one index.
template <typename Value>
struct StoreValue {
  Value value;
  Value* values;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const { values[index] = value; }
};

// The verdict on a step, and a copy of its metric slots. Runs for one index.
struct JudgeStep {
  const float* metric_slots;
  std::int64_t metric_slot_count;
  std::int64_t loss;  // index in the metric slots; likewise for the number of overflows
  std::int64_t overflow;
  float* record;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t /*index*/) const {
    record[step_verdict] = static_cast<float>(judge_step(record, metric_slots[loss], metric_slots[overflow]));
    for (std::int64_t i = 0; i < metric_slot_count; ++i) record[step_metric_slots + i] = metric_slots[i];
  }
};

// The scale that clips the gradient norm, from sums of squares. Runs for one index.
struct ClipStep {
  const double* squares;
  std::int64_t count;
  float limit;
  float* record;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t /*index*/) const {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += squares[i];
    clip_step(record, sum, limit);
  }
};

// Clips values, see clip_value(). One thread per four elements.
struct ClipValues {
  float* gradients;
  std::int64_t count;
  float limit;
  const float* gradient_scale;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const float bound = limit / *gradient_scale;
    Float4 values = load_float4(gradients, index, count);
    for (float& value : values.at) value = clip_value(value, bound);
    store_float4(values, gradients, index, count);
  }
};

// EMA of the weights. One thread per four elements.
struct UpdateEma {
  float* values;
  std::uint16_t* narrow;  // half-precision copy of the values, or null
  DType narrow_dtype;
  EmaRule rule;
  float* mean;
  std::int64_t count;
  const float* record;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const float share = ema_share(rule, record);
    if (share == 0) return;
    const Float4 from = load_float4(values, index, count);
    Float4 into = load_float4(mean, index, count);
    for (int i = 0; i < quad; ++i) into.at[i] = averaged(into.at[i], share, from.at[i]);
    store_float4(into, mean, index, count);
    if (!rule.leads) return;
    store_float4(into, values, index, count);
    store_narrow(into, narrow_dtype, narrow, index, count);
  }
};

// Swaps the elements of two arrays. One thread per four.
struct ExchangeValues {
  float* values;
  float* other;
  std::uint16_t* narrow;  // half-precision copy of the values, or null
  DType narrow_dtype;
  std::int64_t count;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Float4 before = load_float4(values, index, count);
    const Float4 after = load_float4(other, index, count);
    store_float4(after, values, index, count);
    store_float4(before, other, index, count);
    store_narrow(after, narrow_dtype, narrow, index, count);
  }
};

// Copies an array to another. One thread per four elements.
struct CopyValues {
  const float* other;
  float* values;
  std::uint16_t* narrow;  // half-precision copy of the values, or null
  DType narrow_dtype;
  std::int64_t count;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const Float4 now = load_float4(other, index, count);
    store_float4(now, values, index, count);
    store_narrow(now, narrow_dtype, narrow, index, count);
  }
};

// difference = (a - b) * factor. One thread per four elements.
struct Subtract {
  const float* a;
  const float* b;
  float factor;
  float* difference;
  std::int64_t count;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    Float4 values = load_float4(a, index, count);
    const Float4 less = load_float4(b, index, count);
    for (int i = 0; i < quad; ++i) values.at[i] = (values.at[i] - less.at[i]) * factor;
    store_float4(values, difference, index, count);
  }
};

// One thread per element.
struct AverageInto {
  const float* batch;
  float momentum;
  float* running;
  const float* skip;  // nothing changes unless this is 0

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    if (*skip != 0) return;
    running[index] = averaged(running[index], momentum, batch[index]);
  }
};

// values (+)= sums, which are in the device's precision. One thread per eight elements; the last ones may be padding of
// `sums` only.
template <DType dtype>
struct WidenInto {
  const std::byte* sums;
  float* values;
  std::int64_t count;
  Accumulate accumulate;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const ChannelVector more = load<dtype>(sums, index);
    for (int half = 0; half < 2; ++half) {
      const std::int64_t at = 2 * index + half;
      Float4 total{};
      if (accumulate == Accumulate::add) total = load_float4(values, at, count);
      for (int i = 0; i < quad; ++i) total.at[i] += more.at[quad * half + i];
      store_float4(total, values, at, count);
    }
  }
};

// Half-precision copy of the elements. One thread per four.
struct Narrow {
  const float* values;
  DType dtype;
  std::uint16_t* narrowed;
  std::int64_t count;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    store_narrow(load_float4(values, index, count), dtype, narrowed, index, count);
  }
};

// counters (+)= numbers of elements with |value| >= limit or NaN. One thread per counter, which takes every
// `slices`-th group of four.
struct CountOverflows {
  const float* values;
  std::int64_t count;
  float limit;
  std::int64_t slices;
  float* counters;  // [slices]
  Accumulate accumulate;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    float found = accumulate == Accumulate::add ? counters[index] : 0;
    for (std::int64_t at = index; at < quads(count); at += slices) {
      const Float4 four = load_float4(values, at, count);
      for (const float value : four.at) found += fabsf(value) < limit ? 0 : 1;
    }
    counters[index] = found;
  }
};

// sums (+)= fixed-point form of `values`. One thread per element.
struct SumFixed {
  const float* values;
  FixedPoint form;
  std::int64_t* sums;
  Accumulate accumulate;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t before = accumulate == Accumulate::add ? sums[index] : 0;
    sums[index] = before + form.fixed(values[index]);
  }
};

struct ValuesOfFixed {
  const std::int64_t* sums;
  float* values;

  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t index) const { values[index] = FixedPoint::value(sums[index]); }
};

}  // namespace lockstep::cuda
