#include "device/cpu/cpu_ops.hpp"

#include <cassert>

#include "device/cpu/instruction_sets/loops.hpp"
#include "device/cpu/layout/cpu_layout.hpp"
#include "device/cpu/norm/norm.hpp"
#include "device/cpu/passes/dropout_pass.hpp"
#include "device/cpu/passes/passes.hpp"

namespace lockstep::cpu {
namespace {

static_assert(DeferredNorm::rows_per_channel == norm_rows);

// Stored as features, so the rows of a channel block are contiguous: [blocks][norm_rows][B].
NormTable table_of(const Tensor& rows, std::int64_t lanes) { return {rows.as<float>(), rows.shape()[3], lanes}; }

// For whole channel blocks.
OutputSums sums_in(const Tensor& memory) {
  auto* const first = reinterpret_cast<double*>(memory.data());
  return {first, first + memory.shape().count() / (2 * std::int64_t{sizeof(double)})};
}

// The deferred norm of a convolution's input, in the form that kernels take. Null if there is none.
class PreviousNormRows {
 public:
  explicit PreviousNormRows(const NormedMap& x) : exists_(x.is_deferred()) {
    if (exists_) norm_ = {x.norm.rows.as<float>(), x.norm.activation};
  }
  const InputNorm* get() const { return exists_ ? &norm_ : nullptr; }

 private:
  bool exists_;
  InputNorm norm_{};
};

}  // namespace

CpuOps::CpuOps(const CpuContext& context, InstructionSet set)
    : context_(context),
      loops_(loops_of(set).vectors.of(context.precision)),
      convolutions_(context, set),
      matmul_(context, set) {
  assert(loops_.lanes == context.lanes);
}

void CpuOps::conv_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y,
                          const Tensor& sums_memory) {
  const PreviousNormRows front(x);
  OutputSums sums{};
  if (sums_memory) sums = sums_in(sums_memory);
  convolutions_.conv_forward(conv, x.x, weight, y, {.x_norm = front.get(), .sums = sums_memory ? &sums : nullptr});
}

void CpuOps::conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx,
                                Accumulate accumulate) {
  convolutions_.conv_backward_data(conv, dy, weight, dx, {.accumulate = accumulate});
}

void CpuOps::conv_backward_weight(const Conv2d& conv, const NormedMap& x, const NormedGradient& dy,
                                  const Tensor& dweight, Accumulate accumulate) {
  const PreviousNormRows front(x);
  DeferredNormGradient norm{};
  if (dy.is_deferred()) norm = {dy.x.norm.rows.as<float>(), dy.x.x.data(), dy.dy.data()};
  convolutions_.conv_backward_weight(
      conv, x.x, dy.is_deferred() ? dy.dz : dy.dy, dweight,
      {.x_norm = front.get(), .dy_norm = dy.is_deferred() ? &norm : nullptr, .accumulate = accumulate});
}

void CpuOps::norm_forward(const Tensor& x, const Tensor& sums, const BatchNorm& norm, const Tensor& residual,
                          Activation activation, const Tensor& y) {
  if (!sums) {
    cpu::norm_forward(context_, loops_, x, norm, residual, activation, y);
    return;
  }
  cpu::norm_forward(context_, loops_, x, sums_in(sums), norm, residual, activation, y);
}

void CpuOps::norm_infer(const Tensor& x, const NormWeights& weights, const Tensor& running_mean,
                        const Tensor& running_variance, const Tensor& residual, Activation activation,
                        const Tensor& y) {
  cpu::norm_infer(context_, loops_, x, weights, running_mean, running_variance, residual, activation, y);
}

void CpuOps::norm_backward(const Tensor& x, const Tensor& y, const Tensor& dy, const NormWeights& weights,
                           Activation activation, const NormSaved& saved, const Tensor& dx, const Tensor& d_residual,
                           const Tensor& d_scale, const Tensor& d_shift, Accumulate accumulate) {
  cpu::norm_backward(context_, loops_, x, y, dy, weights, activation, saved,
                     {dx, d_residual, d_scale, d_shift, accumulate});
}

void CpuOps::bias_forward(const Tensor& x, const Tensor& bias, Activation activation, const Tensor& y) {
  if (x.layout() == Layout::plain) {
    plain_bias_forward(x, bias, activation, y);
  } else {
    cpu::bias_forward(context_, loops_, x, bias, activation, y);
  }
}

void CpuOps::bias_backward(const Tensor& y, const Tensor& dy, Activation activation, const Tensor& dx,
                           const Tensor& d_bias, Accumulate accumulate) {
  if (dy.layout() == Layout::plain) {
    plain_bias_backward(context_, y, dy, activation, dx, d_bias, accumulate);
  } else {
    cpu::bias_backward(context_, loops_, y, dy, activation, dx, d_bias, accumulate);
  }
}

void CpuOps::activate_forward(const Curve& curve, const Tensor& x, const Tensor& y) {
  if (x.layout() == Layout::plain) {
    plain_activate_forward(curve, x, y);
  } else {
    cpu::activate_forward(context_, loops_, curve, x, y);
  }
}

void CpuOps::activate_backward(const Curve& curve, const Tensor& saved, const Tensor& dy, const Tensor& dx) {
  if (saved.layout() == Layout::plain) {
    plain_activate_backward(curve, saved, dy, dx);
  } else {
    cpu::activate_backward(context_, loops_, curve, saved, dy, dx);
  }
}

void CpuOps::drop(const Dropout& dropout, const Tensor& x, const Tensor& y) {
  if (x.layout() == Layout::plain) {
    plain_drop(context_, dropout, x, y);
  } else {
    cpu::drop(context_, dropout, x, y);
  }
}

void CpuOps::add(const Tensor& a, const Tensor& b, const Tensor& y) {
  if (y.layout() == Layout::plain) {
    plain_add(a, b, y);
  } else {
    cpu::add(context_, loops_, a, b, y);
  }
}

void CpuOps::copy(const Tensor& x, const Tensor& y) {
  if (y.layout() == Layout::plain) {
    plain_copy(x, y);
  } else {
    cpu::copy(context_, loops_, x, y);
  }
}

void CpuOps::max_pool_forward(const Pool2d& pool, const Tensor& x, const Tensor& y, const Tensor& winner) {
  cpu::max_pool_forward(context_, loops_, pool, x, y, winner);
}

void CpuOps::max_pool_backward(const Pool2d& pool, const Tensor& dy, const Tensor& winner, const Tensor& dx) {
  cpu::max_pool_backward(context_, loops_, pool, dy, winner, dx);
}

void CpuOps::average_pool_forward(const Pool2d& pool, bool counts_padding, const Tensor& x, const Tensor& y) {
  cpu::average_pool_forward(context_, loops_, pool, counts_padding, x, y);
}

void CpuOps::average_pool_backward(const Pool2d& pool, bool counts_padding, const Tensor& dy, const Tensor& dx) {
  cpu::average_pool_backward(context_, loops_, pool, counts_padding, dy, dx);
}

void CpuOps::blur_forward(std::int64_t stride, const Tensor& x, const Tensor& y) {
  cpu::blur_forward(context_, loops_, stride, x, y);
}

void CpuOps::blur_backward(std::int64_t stride, const Tensor& dy, const Tensor& dx) {
  cpu::blur_backward(context_, loops_, stride, dy, dx);
}

void CpuOps::mean_pool_forward(const Tensor& x, const Tensor& y) { cpu::mean_pool_forward(context_, loops_, x, y); }

void CpuOps::mean_pool_backward(const Tensor& dy, const Tensor& dx) {
  cpu::mean_pool_backward(context_, loops_, dy, dx);
}

void CpuOps::flatten_forward(const Tensor& x, const Tensor& y) { cpu::flatten_forward(context_, loops_, x, y); }

void CpuOps::flatten_backward(const Tensor& dy, const Tensor& dx) { cpu::flatten_backward(context_, loops_, dy, dx); }

void CpuOps::concat_forward(std::span<const Tensor> x, const Tensor& y) { cpu::concat_forward(context_, loops_, x, y); }

void CpuOps::concat_backward(const Tensor& dy, std::span<const Tensor> dx) {
  cpu::concat_backward(context_, loops_, dy, dx);
}

void CpuOps::mirror(const Tensor& x, const Tensor& y) { cpu::mirror(context_, x, y); }
void CpuOps::shift(std::int64_t rows, std::int64_t columns, const Tensor& x, const Tensor& y) {
  cpu::shift(context_, rows, columns, x, y);
}

void CpuOps::subsample_forward(std::int64_t stride, const Tensor& x, const Tensor& y) {
  cpu::subsample_forward(context_, loops_, stride, x, y);
}

void CpuOps::subsample_backward(std::int64_t stride, const Tensor& dy, const Tensor& dx) {
  cpu::subsample_backward(context_, loops_, stride, dy, dx);
}

void CpuOps::linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y) {
  matmul_.linear_forward(x, weight, y);
}

void CpuOps::linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx) {
  matmul_.linear_backward_data(dy, weight, dx);
}

void CpuOps::linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight, Accumulate accumulate) {
  matmul_.linear_backward_weight(x, dy, dweight, accumulate);
}

void CpuOps::softmax_cross_entropy(const Tensor& logits, const Targets& targets, float smoothing, float scale,
                                   const LogitsGradient& gradient, const LossSums& sums, Accumulate accumulate) {
  cpu::softmax_cross_entropy(context_, logits, targets, smoothing, scale, gradient, sums, accumulate);
}

std::int64_t CpuOps::sums_bytes(std::int64_t channels) const {
  return 2 * whole_blocks(channels, context_.lanes) * std::int64_t{sizeof(double)};
}

TensorForm CpuOps::form_after_norm(const Tensor& x) const {
  return {{1, DeferredNorm::rows_per_channel, 1, x.shape()[3]}, DType::f32, Layout::features};
}

NormedMap CpuOps::norm_forward_deferred(const Tensor& x, const Tensor& sums, const BatchNorm& norm,
                                        Activation activation, const Tensor& rows) {
  const NormTable table = table_of(rows, context_.lanes);
  if (sums) {
    set_batch_norm(context_, x, sums_in(sums), norm, table);
  } else {
    set_batch_norm(context_, loops_, x, norm, table);
  }
  return {x, {rows, activation}};
}

NormedMap CpuOps::norm_infer_deferred(const Tensor& x, const NormWeights& weights, const Tensor& running_mean,
                                      const Tensor& running_variance, Activation activation, const Tensor& rows) {
  set_running_norm(weights, running_mean, running_variance, table_of(rows, context_.lanes));
  return {x, {rows, activation}};
}

void CpuOps::conv_backward_data_norm(const Conv2d& conv, const Tensor& dy, const Tensor& weight,
                                     const PreviousNorm& front, const Tensor& dz, Accumulate accumulate) {
  const NormedMap& x = front.x;
  const PreviousNormRows norm(x);
  const Tensor memory = scratch_tensor(context_.arena, sums_bytes(conv.in_channels));
  const OutputSums sums = sums_in(memory);
  convolutions_.conv_backward_data(conv, dy, weight, dz,
                                   {.x_norm = norm.get(),
                                    .mask_x = x.x.data(),
                                    .mask_y = front.y ? front.y.data() : nullptr,
                                    .sums = &sums,
                                    .accumulate = accumulate});
  set_norm_gradient(context_, x.x, sums, front.gradient, table_of(x.norm.rows, context_.lanes));
}

void CpuOps::norm_backward_deferred(const NormedGradient& dy) {
  cpu::norm_backward_deferred(context_, loops_, dy, table_of(dy.x.norm.rows, context_.lanes));
}

}  // namespace lockstep::cpu
