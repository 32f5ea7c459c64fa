#include "device/cpu/cpu_fused_ops.hpp"

#include "device/cpu/layout/cpu_layout.hpp"
#include "device/cpu/norm/norm.hpp"

namespace lockstep::cpu {
namespace {

static_assert(PendingNorm::rows_per_channel == norm_rows);

// As features, rows of a channel block lie together: [blocks][norm_rows][B].
NormTable table_of(const Tensor& rows, std::int64_t lanes) { return {rows.as<float>(), rows.shape()[3], lanes}; }

// The norm in front of a convolution, as its kernels take it: null where there is none.
class FrontNorm {
 public:
  explicit FrontNorm(const NormedMap& x) : exists_(x.norm.rows) {
    if (exists_) norm_ = {x.norm.rows.as<float>(), x.norm.activation};
  }
  const InputNorm* get() const { return exists_ ? &norm_ : nullptr; }

 private:
  bool exists_;
  InputNorm norm_{};
};

// Memory for a kernel's sums, for whole blocks of channels.
class SumsMemory {
 public:
  SumsMemory(const CpuContext& context, std::int64_t channels)
      : stored_(whole_blocks(channels, context.lanes)),
        memory_(scratch_tensor(context.arena, 2 * stored_ * std::int64_t{sizeof(double)})),
        sums_{reinterpret_cast<double*>(memory_.data()), reinterpret_cast<double*>(memory_.data()) + stored_} {}
  const OutputSums& sums() const { return sums_; }

 private:
  std::int64_t stored_;
  Tensor memory_;
  OutputSums sums_;
};

double count_of(const Tensor& map) {
  const Shape& shape = map.shape();
  return static_cast<double>(shape[0] * shape[1] * shape[2]);
}

}  // namespace

void CpuFusedOps::conv_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y) {
  const FrontNorm front(x);
  convolutions_.conv_forward(conv, x.x, weight, y, {.x_norm = front.get()});
}

void CpuFusedOps::conv_norm_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y,
                                    const BatchNorm& norm, const Tensor& rows) {
  const FrontNorm front(x);
  const SumsMemory memory(context_, conv.out_channels);
  const OutputSums& sums = memory.sums();
  convolutions_.conv_forward(conv, x.x, weight, y, {.x_norm = front.get(), .sums = &sums});
  const NormTable table = table_of(rows, context_.lanes);
  table.clear();
  for (std::int64_t channel = 0; channel < table.channels(); ++channel) {
    table.set_from_batch(channel, {sums.first[channel], sums.second[channel], 0.0, count_of(y)}, norm);
  }
}

void CpuFusedOps::norm_rows(const NormWeights& weights, const Tensor& running_mean, const Tensor& running_variance,
                            const Tensor& rows) {
  set_running_norm(weights, running_mean, running_variance, table_of(rows, context_.lanes));
}

void CpuFusedOps::norm_apply(const NormedMap& x, const Tensor& residual, const Tensor& y) {
  apply_norm(context_, loops_, x.x, table_of(x.norm.rows, context_.lanes), residual, x.norm.activation, y);
}

void CpuFusedOps::conv_backward_weight(const Conv2d& conv, const NormedMap& x, const Tensor& dy, const Tensor& dweight,
                                       Accumulate accumulate) {
  const FrontNorm front(x);
  convolutions_.conv_backward_weight(conv, x.x, dy, dweight, {.x_norm = front.get(), .accumulate = accumulate});
}

void CpuFusedOps::conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx,
                                     Accumulate accumulate) {
  convolutions_.conv_backward_data(conv, dy, weight, dx, {.accumulate = accumulate});
}

void CpuFusedOps::conv_norm_backward(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const NormedMap& x,
                                     const NormGradient& gradient, const Tensor& dz) {
  const FrontNorm front(x);
  const SumsMemory memory(context_, conv.in_channels);
  const OutputSums& sums = memory.sums();
  convolutions_.conv_backward_data(conv, dy, weight, dz, {.x_norm = front.get(), .gate_x = x.x.data(), .sums = &sums});
  const NormTable table = table_of(x.norm.rows, context_.lanes);
  for (std::int64_t channel = 0; channel < table.channels(); ++channel) {
    table.set_backward(channel, sums.first[channel], sums.second[channel], count_of(x.x), gradient);
  }
}

void CpuFusedOps::norm_gradient(const NormedMap& x, const Tensor& dz, const Tensor& dx) {
  apply_norm_gradient(context_, loops_, x.x, table_of(x.norm.rows, context_.lanes), dz, dx);
}

}  // namespace lockstep::cpu
