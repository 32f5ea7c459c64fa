// A tensor: logical shape, element type and storage on one device.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "device/arena.hpp"

namespace lockstep {

enum class DType : std::uint8_t { f32, bf16, f16, i64, i32, u8 };

constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return 1;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::i64:
      return 8;
  }
  return 0;
}

const char* name_of(DType dtype);  // "f32", "bf16", ...

// The memory layout of elements. Names describe the use; the device decides the bytes.
enum class Layout : std::uint8_t {
  plain,     // row-major in the order of the shape
  images,    // [n, h, w, c]: written by the loader, read by a first convolution. CPU: planar, n c h w, fp32
  features,  // [n, h, w, c]: between layers. CPU: blocked by channels, n c/B h w B, padding channels zero
};

// Up to four logical dimensions; images are [n, h, w, c].
struct Shape {
  std::array<std::int64_t, 4> dims{};
  int ndim = 0;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) {
    assert(sizes.size() <= dims.size());
    for (std::int64_t size : sizes) dims[static_cast<std::size_t>(ndim++)] = size;
  }
  std::int64_t operator[](int axis) const { return dims[static_cast<std::size_t>(axis)]; }
  std::int64_t count() const {
    std::int64_t product = 1;
    for (int axis = 0; axis < ndim; ++axis) product *= (*this)[axis];
    return product;
  }
  bool operator==(const Shape&) const = default;
  std::string text() const;  // "[128, 32, 32, 16]"
};

// A handle. Copies share the storage; the last one returns it to the arena. Views (slices of flat arrays, foreign
// memory) own nothing and must not outlive what they view.
class Tensor {
 public:
  Tensor() = default;
  // Takes over the ownership that Arena::allocate gave `block`.
  Tensor(ArenaBlock* block, Shape shape, DType dtype, Layout layout)
      : block_(block), data_(block->data), bytes_(block->requested), shape_(shape), dtype_(dtype), layout_(layout) {}
  // A view of `bytes` bytes at `data`.
  Tensor(std::byte* data, std::int64_t bytes, Shape shape, DType dtype, Layout layout)
      : data_(data), bytes_(bytes), shape_(shape), dtype_(dtype), layout_(layout) {}

  Tensor(const Tensor& other)
      : block_(other.block_),
        data_(other.data_),
        bytes_(other.bytes_),
        shape_(other.shape_),
        dtype_(other.dtype_),
        layout_(other.layout_) {
    if (block_ != nullptr) ++block_->owners;
  }
  Tensor(Tensor&& other) noexcept { swap(other); }
  Tensor& operator=(Tensor other) noexcept {
    swap(other);
    return *this;
  }
  ~Tensor() {
    if (block_ != nullptr && --block_->owners == 0) block_->arena->release(block_);
  }
  void swap(Tensor& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(shape_, other.shape_);
    std::swap(dtype_, other.dtype_);
    std::swap(layout_, other.layout_);
  }

  explicit operator bool() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Layout layout() const { return layout_; }
  std::int64_t bytes() const { return bytes_; }  // of storage, padding elements included
  std::byte* data() const { return data_; }
  template <typename T>
  T* as() const {
    assert(sizeof(T) == static_cast<std::size_t>(size_of(dtype_)));
    return reinterpret_cast<T*>(data_);
  }

  // Elements [first, first + count) of a plain one-dimensional tensor, as a view.
  Tensor slice(std::int64_t first, std::int64_t count) const {
    assert(layout_ == Layout::plain && shape_.ndim == 1 && first >= 0 && first + count <= shape_[0]);
    return {data_ + first * size_of(dtype_), count * size_of(dtype_), Shape{count}, dtype_, Layout::plain};
  }

 private:
  ArenaBlock* block_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  Shape shape_;
  DType dtype_ = DType::f32;
  Layout layout_ = Layout::plain;
};

}  // namespace lockstep
