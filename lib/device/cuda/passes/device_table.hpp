// Arrays in GPU memory of types that tensors do not have, and a step's values there.
#pragma once

#include <cstdint>

#include "device/arena.hpp"
#include "device/cuda/passes/flat_kernels.hpp"
#include "device/flat/step_record.hpp"
#include "device/tensor.hpp"

namespace lockstep::cuda {

// Memory for `count` values of a type that tensors do not have.
template <typename Entry>
Tensor table(Arena& arena, std::int64_t entries) {
  return {arena.allocate(static_cast<std::int64_t>(sizeof(Entry)) * entries), Shape{entries}, DType::u8, Layout::plain};
}

template <typename Entry>
Entry* entries_of(const Tensor& table) {
  return reinterpret_cast<Entry*>(table.data());
}

inline StepPlaces places_in(const StepRecord& record) {
  return {record.at(step_learning_rate).as<float>(), record.at(step_gradient_scale).as<float>(),
          record.at(step_applied_steps).as<float>(), record.at(step_verdict).as<float>()};
}

}  // namespace lockstep::cuda
