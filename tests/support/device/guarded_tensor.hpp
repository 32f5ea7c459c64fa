// A tensor of the CPU whose neighbours in memory nobody may touch.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "device/cpu/layout/cpu_layout.hpp"
#include "device/tensor.hpp"
#include "support/device/guarded_memory.hpp"

namespace lockstep::cpu {

// A tensor in memory of its own size, filled with NaN.
class GuardedTensor {
 public:
  GuardedTensor(const Shape& shape, DType dtype, Layout layout, int lanes)
      : bytes_(storage_count(shape, layout, lanes) * size_of(dtype)),
        memory_(std::make_unique<GuardedMemory>(bytes_)),
        tensor_(memory_->data(), bytes_, shape, dtype, layout) {
    std::memset(memory_->data(), 0xff, static_cast<std::size_t>(bytes_));
  }

  const Tensor& tensor() const { return tensor_; }
  std::byte* data() const { return memory_->data(); }
  std::string bytes() const { return {reinterpret_cast<const char*>(data()), static_cast<std::size_t>(bytes_)}; }
  bool is_intact() const { return memory_->is_intact(); }

 private:
  std::int64_t bytes_;
  std::unique_ptr<GuardedMemory> memory_;
  Tensor tensor_;
};

}  // namespace lockstep::cpu
