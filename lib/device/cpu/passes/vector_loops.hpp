// Passes over feature maps, as tables of functions, one per instruction set and storage type.
//
// A feature map is n, ceil(c/B), h, w, B with B = `lanes`. Each loop works on one channel block: one vector of B
// channels per pixel. Elements are fp32 or bf16, arithmetic is fp32. Loops run on one thread; callers split the work by
// shape alone. Sums over pixels are fp32 for short runs and double beyond.
#pragma once

#include <cassert>
#include <cstdint>

#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "device/ops.hpp"
#include "device/tensor.hpp"

namespace lockstep::cpu {

// One channel block of consecutive images: `images` planes of `pixels` vectors, `stride` elements apart.
struct Planes {
  std::int64_t images;
  std::int64_t pixels;
  std::int64_t stride;
};

// The parameters of a norm for one channel block, as rows of B floats.
//   z = factor * x + offset;  dx = factor * ((dz - mean_dz) + x_factor * (x - mean))
enum NormRow { norm_factor, norm_offset, norm_mean, norm_x_factor, norm_mean_dz, norm_rows };

// A deferred norm of one channel block: z = activation(factor * x + offset) replaces x. Null rows: x is read as it is.
struct BlockNorm {
  const float* rows = nullptr;
  Activation activation = Activation::none;
};

// How the gradient dy of y = activation(z), z = norm(x) (+ residual), becomes dz.
enum class ActivationGradient {
  pass,       // dz = dy: no activation
  relu_of_x,  // dy where z > 0, recomputed bit for bit as in forward
  relu_of_y,  // dy where y > 0
  gelu_of_x,  // dy * gelu'(z)
};

// Geometry of pooling one channel block: k x k window, height x width input, out_height x out_width output.
struct PoolPlane {
  Pool2d pool;
  std::int64_t height, width;
  std::int64_t out_height, out_width;
};

// Geometry of blurring one channel block: a height x width plane. Only every from_stride-th pixel is stored, the others
// are zero; only every to_stride-th pixel is computed. Forward uses to_stride, backward from_stride. Strides are 1 or
// 2.
struct BlurPlane {
  std::int64_t height, width;
  std::int64_t from_stride, to_stride;
};

// `void*` points to elements of the table's storage type. Rows and sums have B entries each.
struct VectorLoops {
  std::int64_t lanes;

  // sums[0] = sum of x - shift, sums[1] = sum of its square.
  void (*moments)(const void* x, Planes planes, const float* shift, double* sums);
  // y = activation(factor * x + offset (+ residual)). `residual` may be null. y may alias x.
  void (*normalize)(const void* x, const void* residual, Planes planes, const float* rows, Activation activation,
                    void* y);
  // dz from dy; sums[0] = sum of dz, sums[1] = sum of dz * (x - mean). Writes dz unless it is null. dz may alias dy.
  void (*norm_sums)(const void* x, const void* y, const void* dy, Planes planes, const float* rows,
                    ActivationGradient activation, void* dz, double* sums);
  // The same for fp32 values whose images are `values_stride` apart: stores y = values, or dz from dy = values. Sums
  // are taken before rounding.
  void (*store_with_moments)(const float* values, std::int64_t values_stride, Planes planes, void* y, double* sums);
  void (*store_with_norm_sums)(const float* values, std::int64_t values_stride, const void* x, const void* y,
                               Planes planes, const float* rows, ActivationGradient activation, void* dz, double* sums);
  // `activation`: anything but relu_of_y. dx may alias dy.
  void (*norm_gradient)(const void* x, const void* dy, Planes planes, const float* rows, ActivationGradient activation,
                        void* dx);
  // dx = dy where y > 0, or everywhere without activation; sums = sum of dx. dx may alias dy.
  void (*bias_gradient)(const void* y, const void* dy, Planes planes, Activation activation, void* dx, double* sums);

  void (*max_pool)(const void* x, const PoolPlane& plane, void* y, std::uint8_t* winner);
  void (*max_pool_gradient)(const void* dy, const std::uint8_t* winner, const PoolPlane& plane, void* dx);
  void (*average_pool)(const void* x, const PoolPlane& plane, bool counts_padding, void* y);
  void (*average_pool_gradient)(const void* dy, const PoolPlane& plane, bool counts_padding, void* dx);
  void (*blur)(const void* x, const BlurPlane& plane, void* y);
  void (*sum_pixels)(const void* x, std::int64_t pixels, double* sums);
  void (*fill_pixels)(const float* row, std::int64_t pixels, void* y);

  // Every stride-th pixel of a height x width plane, and the transpose of that. The transpose writes zero elsewhere,
  // and in all but the first `channels` channels.
  void (*subsample)(const void* x, std::int64_t height, std::int64_t width, std::int64_t stride, void* y);
  void (*subsample_gradient)(const void* dy, std::int64_t height, std::int64_t width, std::int64_t channels,
                             std::int64_t stride, void* dx);
  void (*add)(const void* a, const void* b, std::int64_t vectors, void* y);
  // Writes zero in all but the first `channels` channels. y may alias x.
  void (*activate)(const Curve& curve, const void* x, std::int64_t pixels, std::int64_t channels, void* y);
  // `saved`: saved_for_backward(curve, x, y). dx may alias dy.
  void (*activate_gradient)(const Curve& curve, const void* saved, const void* dy, std::int64_t pixels, void* dx);

  // Converts between a block and fp32 values of its first `channels` channels. Other channels are dropped, or set to
  // zero.
  void (*unpack)(const void* x, std::int64_t pixels, std::int64_t channels, std::int64_t pixel_stride,
                 std::int64_t channel_stride, float* values);
  void (*pack)(const float* values, std::int64_t pixels, std::int64_t channels, std::int64_t pixel_stride,
               std::int64_t channel_stride, void* x);

  // For plain fp32 values, in double: the same bits from every table.
  double (*sum_of_squares)(const float* values, std::int64_t count);
};

// Tables for both storage types of feature maps.
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
