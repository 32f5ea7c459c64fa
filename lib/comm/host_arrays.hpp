// Arrays in host memory that a reducer owns. No page belongs to two of them, so that each can be pinned.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "device/tensor.hpp"

namespace lockstep {

class HostArrays {
 public:
  // `count` zeros with plain layout, valid as long as this.
  Tensor allocate(std::int64_t count, DType dtype) {
    const std::int64_t bytes = count * size_of(dtype);
    memory_.emplace_back(new (page_alignment) std::byte[static_cast<std::size_t>(bytes)]());
    return {memory_.back().get(), bytes, Shape{count}, dtype, Layout::plain};
  }

 private:
  static constexpr std::align_val_t page_alignment{4096};
  struct FreeAligned {
    void operator()(std::byte* memory) const { ::operator delete[](memory, page_alignment); }
  };

  std::vector<std::unique_ptr<std::byte[], FreeAligned>> memory_;
};

}  // namespace lockstep
