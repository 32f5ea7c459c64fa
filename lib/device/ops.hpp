// All the arithmetic that layers need from a device: the whole porting surface.
//
// Stateless for its caller: algorithm choices and primitives are cached by shape inside the backend. Every call is
// stream-ordered. Outputs are tensors made by the caller; they may not alias inputs unless a comment says so.
// Feature maps (`Layout::features`, [n, h, w, c]) have the device's precision; everything else is fp32.
//
// A norm between two convolutions may stay deferred: whoever reads its x applies it, and the activation, while reading,
// so that its result is never in memory. Its gradient likewise: the next convolution finds its sums, and that in front
// applies it while reading. Only a device whose convolutions do so overrides the last section; elsewhere norms and
// their gradients are applied where they stand, and none is ever deferred.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "device/tensor.hpp"

namespace lockstep {

// Square kernel, same stride and padding in both directions, no dilation, no groups.
struct Conv2d {
  std::int64_t in_channels;
  std::int64_t out_channels;
  std::int64_t kernel;
  std::int64_t stride = 1;
  std::int64_t padding = 0;

  std::int64_t out_size(std::int64_t in_size) const { return (in_size + 2 * padding - kernel) / stride + 1; }
  bool operator==(const Conv2d&) const = default;
};

struct Pool2d {
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding = 0;

  std::int64_t out_size(std::int64_t in_size) const { return (in_size + 2 * padding - kernel) / stride + 1; }
};

enum class Activation : std::uint8_t { none, relu };

class NormGroup;

// A share of a step has one or several parts. The first part's gradient overwrites, the others add: a part is computed
// whole and then added once, element by element, so that the sum does not depend on who computed which part.
enum class Accumulate : std::uint8_t { overwrite, add };

// Scale and shift of a norm, and where its gradients go. All [c], fp32, stored form.
struct NormWeights {
  Tensor scale;  // gamma
  Tensor shift;  // beta
  float epsilon = 1e-5F;
};

// What forward keeps for backward. [c], fp32, but for the ReLU mask, which is u8 plain [Ops::relu_mask_bytes].
struct NormSaved {
  Tensor mean;
  Tensor inverse_deviation;  // 1 / sqrt(biased variance + epsilon)
  Tensor relu_mask = {};     // where a ReLU after a residual let through
  // Where the convolution that reads y finds this norm's gradient, see Ops::fuses_norm_reductions(): of
  // form_after_norm(), what it needs to know of the norm. Else empty.
  Tensor rows = {};
  // Of whose batches, as large as this one, the statistics are; null: of this one alone. Device::has_norm_groups() says
  // where it may be another.
  NormGroup* group = nullptr;
};

// A batch norm in training. `batch_mean` and `batch_variance` (unbiased, as PyTorch's running variance takes it) get
// statistics_scale * value, overwritten or added to: slots of the flat gradient buffer.
struct BatchNorm {
  NormWeights weights;
  NormSaved saved;
  Tensor batch_mean;
  Tensor batch_variance;
  float statistics_scale;
  Accumulate accumulate;
};

// A norm and an activation that have not been applied: whoever reads x reads z = activation(norm(x)) in its place.
struct DeferredNorm {
  static constexpr std::int64_t rows_per_channel = 5;

  Tensor rows;  // of Ops::form_after_norm(); what is in them is the device's own
  Activation activation = Activation::none;
};

// A map as its reader takes it: z, or x itself without a deferred norm.
struct NormedMap {
  Tensor x;
  DeferredNorm norm = {};

  bool is_deferred() const { return static_cast<bool>(norm.rows); }
};

// Where the gradients of a norm's weights go.
struct NormGradient {
  Tensor inverse_deviation;  // of NormSaved
  Tensor d_scale;
  Tensor d_shift;
  Accumulate accumulate = Accumulate::overwrite;
  NormGroup* group = nullptr;  // of NormSaved
};

// The norm in front of a convolution, whose gradient its backward_data finds.
struct PreviousNorm {
  NormedMap x;  // as the norm read it, with its rows
  NormGradient gradient = {};
  // What the activation gave where it came after a residual: it let through where this is positive. Else empty.
  Tensor y = {};
};

// A gradient as its reader takes it: dy, or what the backward of a norm will make of dz. The convolution that reads it
// first, in backward_weight, does so and leaves it in dy.
struct NormedGradient {
  Tensor dy;
  Tensor dz = {};    // after the activation; dy may alias it
  NormedMap x = {};  // as the norm read it, with its rows as conv_backward_data_norm left them

  bool is_deferred() const { return x.is_deferred(); }
};

// What a tensor is made with: see Device::make.
struct TensorForm {
  Shape shape;
  DType dtype;
  Layout layout;
};

// What logits ought to say.
struct Targets {
  // NOLINTNEXTLINE(google-explicit-constructor): labels alone are targets
  Targets(Tensor of_all, Tensor of_others = {}, Tensor of_first = {})
      : labels(std::move(of_all)), others(std::move(of_others)), shares(std::move(of_first)) {}

  Tensor labels;  // i32 [n]; -1: not counted, gradient zero
  // Where each sample is mixed of two; else empty.
  Tensor others;  // i32 [n]: the other label
  Tensor shares;  // fp32 [n]: what the target holds of the first label, from 0 to 1; the other has the rest
};

// Where the gradient of softmax cross-entropy goes: d_logits = scale * loss_scale[0] * (softmax - target). Not wanted
// if d_logits is empty; without loss scaling loss_scale is.
struct LogitsGradient {
  Tensor d_logits;    // plain [n, classes]
  Tensor loss_scale;  // [1]; the sums are not multiplied with it
};

// Softmax cross-entropy sums of the parts seen so far: two fp32 elements.
struct LossSums {
  Tensor loss;  // [1] sum over samples of scale * loss
  // [1] number of samples whose largest logit is the label's, of two labels that of the larger share (ties: the lowest
  // class, the first label)
  Tensor correct;
};

class Ops {
 public:
  virtual ~Ops() = default;

  // ---- convolution: x features or images [n, h, w, in], weight stored form, y features [n, h', w', out], no bias
  // `sums` (u8 plain [sums_bytes], may be empty) gets what norm_forward needs to know of y.
  virtual void conv_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y,
                            const Tensor& sums) = 0;
  // Of an x without a deferred norm. Adding may take memory like dx for the while.
  virtual void conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx,
                                  Accumulate accumulate) = 0;
  virtual void conv_backward_weight(const Conv2d& conv, const NormedMap& x, const NormedGradient& dy,
                                    const Tensor& dweight, Accumulate accumulate) = 0;

  // ---- batch norm over n, h, w, then (+ residual), then activation
  // Training: by the statistics of this batch. `sums`: of the convolution that wrote x; empty: x is read once more.
  // `residual` may be empty.
  virtual void norm_forward(const Tensor& x, const Tensor& sums, const BatchNorm& norm, const Tensor& residual,
                            Activation activation, const Tensor& y) = 0;
  // Evaluation: by the running statistics.
  virtual void norm_infer(const Tensor& x, const NormWeights& weights, const Tensor& running_mean,
                          const Tensor& running_variance, const Tensor& residual, Activation activation,
                          const Tensor& y) = 0;
  // What the ReLU mask of a ReLU after a residual takes; 0: this device keeps none, and reads y.
  virtual std::int64_t relu_mask_bytes(const Shape&) const { return 0; }
  // `y` may be empty where there was no residual or is a ReLU mask. dx may alias dy. `d_residual` (empty without
  // residual) gets dy after the activation and may alias dy, but not dx.
  virtual void norm_backward(const Tensor& x, const Tensor& y, const Tensor& dy, const NormWeights& weights,
                             Activation activation, const NormSaved& saved, const Tensor& dx, const Tensor& d_residual,
                             const Tensor& d_scale, const Tensor& d_shift, Accumulate accumulate) = 0;

  // ---- y = activation(x + bias), bias over the last dimension; features or plain [n, c]. y may alias x.
  virtual void bias_forward(const Tensor& x, const Tensor& bias, Activation activation, const Tensor& y) = 0;
  // dx may alias dy.
  virtual void bias_backward(const Tensor& y, const Tensor& dy, Activation activation, const Tensor& dx,
                             const Tensor& d_bias, Accumulate accumulate) = 0;

  // ---- pooling. `winner` is u8 features: the place in the window, row by row, of the largest value (ties: the first).
  virtual void max_pool_forward(const Pool2d& pool, const Tensor& x, const Tensor& y, const Tensor& winner) = 0;
  virtual void max_pool_backward(const Pool2d& pool, const Tensor& dy, const Tensor& winner, const Tensor& dx) = 0;
  // The binomial blur of Zhang 2019: each channel times [1 2 1] x [1 2 1] / 16 about every stride-th pixel, zeros
  // beyond the edge. `stride` is 1 or 2; x [n, h, w, c], y [n, h', w', c], h' = ceil(h / stride).
  virtual void blur_forward(std::int64_t stride, const Tensor& x, const Tensor& y) = 0;
  virtual void blur_backward(std::int64_t stride, const Tensor& dy, const Tensor& dx) = 0;
  // Mean over h and w: features [n, h, w, c] -> plain fp32 [n, c].
  virtual void mean_pool_forward(const Tensor& x, const Tensor& y) = 0;
  virtual void mean_pool_backward(const Tensor& dy, const Tensor& dx) = 0;

  // ---- shapes
  // features [n, h, w, c] -> plain fp32 [n, c*h*w] in PyTorch's order (channel, row, column), and back for the
  // gradient.
  virtual void flatten_forward(const Tensor& x, const Tensor& y) = 0;
  virtual void flatten_backward(const Tensor& dy, const Tensor& dx) = 0;
  // Parameter-free shortcut (He et al. 2015, option A): every stride-th pixel, channels c and up zero.
  // x [n, h, w, c], y [n, h', w', c'], h' = ceil(h / stride).
  virtual void subsample_forward(std::int64_t stride, const Tensor& x, const Tensor& y) = 0;
  virtual void subsample_backward(std::int64_t stride, const Tensor& dy, const Tensor& dx) = 0;
  // y = x with every row of pixels from right to left; both `images` of one shape.
  virtual void mirror(const Tensor& x, const Tensor& y) = 0;
  // sum = sum + other, features of one shape.
  virtual void add(const Tensor& other, const Tensor& sum) = 0;

  // ---- linear: x plain [n, in], weight [out, in], y plain [n, out]; always fp32
  virtual void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y) = 0;
  virtual void linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx) = 0;
  virtual void linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight,
                                      Accumulate accumulate) = 0;

  // ---- loss: logits plain [n, classes]
  // target = (1 - smoothing) * onehot + smoothing / classes, as PyTorch; of two labels the onehots are mixed. Adds to
  // `sums` or overwrites them.
  virtual void softmax_cross_entropy(const Tensor& logits, const Targets& targets, float smoothing, float scale,
                                     const LogitsGradient& gradient, const LossSums& sums, Accumulate accumulate) = 0;

  // ---- kernel choices, as text, one line a layer and direction: measured on first use unless imported before. Where a
  // rule chooses, nothing is measured and there is no text.
  virtual bool measures_kernels() const = 0;
  virtual std::string export_plan() const = 0;
  virtual void import_plan(const std::string& plan) = 0;
  // Choices of an earlier run: taken where they still fit, measured anew where not; never an error. They are part of
  // export_plan() once they are in use.
  virtual void suggest_plan(const std::string& plan) = 0;

  // ---- norms that stay deferred: by the operations above unless the device overrides all of these
  // What a convolution of so many output channels takes for its sums; 0: it leaves none.
  virtual std::int64_t sums_bytes(std::int64_t) const { return 0; }
  // Of what a norm of x leaves in memory for its reader: here its result.
  virtual TensorForm form_after_norm(const Tensor& x) const { return {x.shape(), x.dtype(), x.layout()}; }
  // norm_forward and norm_infer for whoever reads next: returns what it is to read. `z` is of that form.
  virtual NormedMap norm_forward_deferred(const Tensor& x, const Tensor& sums, const BatchNorm& norm,
                                          Activation activation, const Tensor& z);
  virtual NormedMap norm_infer_deferred(const Tensor& x, const NormWeights& weights, const Tensor& running_mean,
                                        const Tensor& running_variance, Activation activation, const Tensor& z);
  // conv_backward_data behind a norm: dz, the gradient after its activation, with the gradients of the norm's weights,
  // and in its rows what NormedGradient takes. Adding is to the gradient of another reader, before the activation.
  virtual void conv_backward_data_norm(const Conv2d& conv, const Tensor& dy, const Tensor& weight,
                                       const PreviousNorm& front, const Tensor& dz, Accumulate accumulate);
  // Whether conv_backward_data_norm takes norms that have been applied, too, whose rows norm_forward left.
  virtual bool fuses_norm_reductions() const { return false; }
};

}  // namespace lockstep
