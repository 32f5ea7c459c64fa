// Memory and values for tests of the CPU's parts, without a device around them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "device/cpu/cpu_context.hpp"
#include "device/cpu/layout/cpu_layout.hpp"
#include "device/cpu/passes/vector_loops.hpp"

namespace lockstep::cpu {

// Largest error of a tensor over its largest value; infinite where something is no number.
template <typename Value>
double largest_error(const std::vector<Value>& values, std::span<const double> expected) {
  double error = 0;
  double largest = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(values[i]) - expected[i]);
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    error = std::max(error, difference);
    largest = std::max(largest, std::abs(expected[i]));
  }
  return error / largest;
}

// Root mean square of a tensor's error over that of its values.
template <typename Value>
double mean_error(const std::vector<Value>& values, std::span<const double> expected) {
  double error = 0;
  double square = 1e-60;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = static_cast<double>(values[i]) - expected[i];
    error += difference * difference;
    square += expected[i] * expected[i];
  }
  return std::sqrt(error / square);
}

// As a test's name spells it.
inline std::string word_for(InstructionSet set) { return facts_of(set).option; }

inline std::vector<InstructionSet> sets_here() {
  std::vector<InstructionSet> sets;
  for (const InstructionSetFacts& facts : instruction_sets) {
    if (runs_here(facts.set)) sets.push_back(facts.set);
  }
  return sets;
}

class CpuFixture {
 public:
  explicit CpuFixture(DType precision, int threads = 1)
      : context{threads, lanes_of(widest_instruction_set()), arena, precision, Verbosity::quiet} {}

  // Between -1 and 1 in steps of 1/64, which bf16 holds exactly.
  static std::vector<float> values(std::int64_t count, std::uint64_t seed) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = std::round(uniform(philox(seed, 0, i)[0]) * 128 - 64) / 64;
    }
    return values;
  }

  // Filled with rubbish, so that what nobody wrote shows.
  Tensor make(const Shape& shape, Layout layout) {
    const DType dtype = layout == Layout::features ? context.precision : DType::f32;
    const std::int64_t bytes = storage_count(shape, layout, context.lanes) * size_of(dtype);
    const Tensor tensor(arena.allocate(bytes), shape, dtype, layout);
    std::fill_n(tensor.data(), bytes, std::byte{0x41});
    return tensor;
  }
  Tensor make_weight(std::span<const std::int64_t> dims) {
    const std::int64_t count = storage_count(ParameterKind::conv_weight, dims, context.lanes);
    return {arena.allocate(count * 4), Shape{count}, DType::f32, Layout::plain};
  }

  static std::span<float> floats(const Tensor& tensor) {
    return {tensor.as<float>(), static_cast<std::size_t>(tensor.shape().count())};
  }
  double error(const Tensor& tensor, std::span<const double> expected) const {
    std::vector<float> values(expected.size());
    unpack_tensor(tensor, values, context.lanes);
    return largest_error(values, expected);
  }
  // By laying the tensor out anew: what differs can only be padding.
  bool padding_is_zero(const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape().count()));
    unpack_tensor(tensor, values, context.lanes);
    const Tensor clean = make(tensor.shape(), tensor.layout());
    pack_tensor(values, clean, context.lanes);
    const std::int64_t bytes = storage_count(tensor.shape(), tensor.layout(), context.lanes) * size_of(tensor.dtype());
    return std::equal(clean.data(), clean.data() + bytes, tensor.data());
  }

 private:
  static constexpr std::int64_t capacity = std::int64_t{256} << 20;
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{Arena::alignment}); }
  };
  std::unique_ptr<std::byte[], Free> memory_{
      static_cast<std::byte*>(::operator new[](capacity, std::align_val_t{Arena::alignment}))};

 public:
  Arena arena{memory_.get(), capacity};
  CpuContext context;
};

}  // namespace lockstep::cpu
