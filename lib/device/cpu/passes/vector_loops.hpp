// The passes over feature maps, once per instruction set and storage type, as tables of functions.
//
// A feature map is n, ceil(c/B), h, w, B with B = `lanes`. Every loop works on one channel block: vectors of B
// channels, one a pixel. Elements are fp32 or bf16, arithmetic is fp32. Loops run on one thread; callers split the work
// over threads in a way that depends on the shape alone. Sums over pixels are fp32 over short runs and double beyond.
#pragma once

#include <cassert>
#include <cstdint>

#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "device/ops.hpp"
#include "device/tensor.hpp"

namespace lockstep::cpu {

// The same channel block of consecutive images: `images` planes of `pixels` vectors, `stride` elements apart.
struct Planes {
  std::int64_t images;
  std::int64_t pixels;
  std::int64_t stride;
};

// What a norm does to a channel block, as rows of B floats.
//   z = factor * x + offset;  dx = factor * ((dz - mean_dz) + x_factor * (x - mean))
enum NormRow { norm_factor, norm_offset, norm_mean, norm_x_factor, norm_mean_dz, norm_rows };

// The rows of one channel block and what follows them: z = activation(factor * x + offset) is read in the place of x.
// No rows: x is read as it is.
struct BlockNorm {
  const float* rows = nullptr;
  Activation activation = Activation::none;
};

// Which pixels let the gradient through.
enum class ReluMask {
  open,    // all: no activation
  from_x,  // where z > 0, recomputed by the arithmetic of forward, bit for bit
  from_y,  // where y > 0
};

// One channel block of a pooling window's geometry: window k x k, input height x width, output out_height x out_width.
struct PoolPlane {
  Pool2d pool;
  std::int64_t height, width;
  std::int64_t out_height, out_width;
};

// One channel block of a blur's geometry: a height x width plane, of which only every from_stride-th pixel is given,
// the others being zero, and only every to_stride-th wanted. Forward wants fewer pixels, backward is given fewer.
// Strides are 1 or 2.
struct BlurPlane {
  std::int64_t height, width;
  std::int64_t from_stride, to_stride;
};

// `void*` are elements of the table's storage type. Rows and sums have B entries each.
struct VectorLoops {
  std::int64_t lanes;

  // sums[0] = sum of x - shift, sums[1] = sum of its square.
  void (*moments)(const void* x, Planes planes, const float* shift, double* sums);
  // y = activation(factor * x + offset (+ residual)). `residual` may be null. y may alias x.
  void (*normalize)(const void* x, const void* residual, Planes planes, const float* rows, Activation activation,
                    void* y);
  // dz = dy after the ReLU mask; sums[0] = sum of dz, sums[1] = sum of dz * (x - mean). Writes dz unless null; it may
  // alias dy.
  void (*norm_sums)(const void* x, const void* y, const void* dy, Planes planes, const float* rows, ReluMask relu_mask,
                    void* dz, double* sums);
  // The same of fp32 values whose images lie `values_stride` apart, on their way to memory: y = values, or dz = values
  // after the ReLU mask. Sums are of what is not yet rounded.
  void (*store_with_moments)(const float* values, std::int64_t values_stride, Planes planes, void* y, double* sums);
  void (*store_with_norm_sums)(const float* values, std::int64_t values_stride, const void* x, const void* y,
                               Planes planes, const float* rows, ReluMask relu_mask, void* dz, double* sums);
  // `ReLU mask` open or from_x. dx may alias dy.
  void (*norm_gradient)(const void* x, const void* dy, Planes planes, const float* rows, ReluMask relu_mask, void* dx);
  // dx = dy where y > 0 (or everywhere); sums = sum of dx. dx may alias dy.
  void (*bias_gradient)(const void* y, const void* dy, Planes planes, Activation activation, void* dx, double* sums);

  void (*max_pool)(const void* x, const PoolPlane& plane, void* y, std::uint8_t* winner);
  void (*max_pool_gradient)(const void* dy, const std::uint8_t* winner, const PoolPlane& plane, void* dx);
  void (*blur)(const void* x, const BlurPlane& plane, void* y);
  void (*sum_pixels)(const void* x, std::int64_t pixels, double* sums);
  void (*fill_pixels)(const float* row, std::int64_t pixels, void* y);

  // Every stride-th pixel of a height x width plane, and its transpose, which writes zero elsewhere and into all
  // channels but the first `channels`.
  void (*subsample)(const void* x, std::int64_t height, std::int64_t width, std::int64_t stride, void* y);
  void (*subsample_gradient)(const void* dy, std::int64_t height, std::int64_t width, std::int64_t channels,
                             std::int64_t stride, void* dx);
  void (*add)(const void* other, std::int64_t vectors, void* sum);

  // Between a block and fp32 values of its first `channels` channels. The other channels are dropped, or zero.
  void (*unpack)(const void* x, std::int64_t pixels, std::int64_t channels, std::int64_t pixel_stride,
                 std::int64_t channel_stride, float* values);
  void (*pack)(const float* values, std::int64_t pixels, std::int64_t channels, std::int64_t pixel_stride,
               std::int64_t channel_stride, void* x);

  // Of plain fp32 values, in doubles: the same bits from every table.
  double (*sum_of_squares)(const float* values, std::int64_t count);
};

// Tables for both types that feature maps are stored in.
template <typename Loops>
struct ByStorage {
  const Loops& of(DType storage) const {
    assert(storage == DType::f32 || storage == DType::bf16);
    return storage == DType::bf16 ? bf16 : f32;
  }

  Loops f32, bf16;
};
using VectorTables = ByStorage<VectorLoops>;

}  // namespace lockstep::cpu
