// All arithmetic that layers need from a device. Porting to another device means implementing this interface.
//
// Ops have no state visible to the caller; backends cache algorithm choices by shape. Every call is stream-ordered. The
// caller allocates outputs; they must not alias inputs unless a comment allows it. Feature maps (`Layout::features`,
// [n, h, w, c]) have the device's precision; everything else is fp32.
//
// A batch norm between two convolutions may be deferred. The operation that reads x then applies norm and activation
// while reading, so their result is never in memory. Its backward is deferred likewise: the next convolution's
// backward-data computes its sums, and the previous convolution applies it while reading. Only devices whose
// convolutions support this override the last section. All others apply norms and their gradients at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "device/tensor.hpp"

namespace lockstep {

// A number for each dimension of a map. A single number is that of both dimensions.
struct Size2d {
  std::int64_t height = 0;
  std::int64_t width = 0;

  constexpr Size2d() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a number is the size of a square
  constexpr Size2d(std::int64_t side) : Size2d(side, side) {}
  constexpr Size2d(std::int64_t of_rows, std::int64_t of_columns) : height(of_rows), width(of_columns) {}

  constexpr bool is_square() const { return height == width; }
  constexpr std::int64_t area() const { return height * width; }
  std::string text() const;  // "3" or "1x7"
  bool operator==(const Size2d&) const = default;
};

// One dimension of a convolution: its rows or its columns.
struct Conv1d {
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding;

  std::int64_t least_size() const { return kernel - 2 * padding; }  // smaller inputs have no output
  std::int64_t out_size(std::int64_t in_size) const { return (in_size - least_size()) / stride + 1; }
};

// The padding is the same at both ends of a dimension. No dilation, no groups.
struct Conv2d {
  std::int64_t in_channels;
  std::int64_t out_channels;
  Size2d kernel;
  Size2d stride = 1;
  Size2d padding = 0;

  Conv1d rows() const { return {kernel.height, stride.height, padding.height}; }
  Conv1d columns() const { return {kernel.width, stride.width, padding.width}; }
  bool operator==(const Conv2d&) const = default;
};

// Windows that begin within the input or the padding before it. With `ceil`, the last one may reach beyond the padding
// behind it, as with PyTorch's ceil_mode.
struct Pool2d {
  static constexpr std::int64_t largest_kernel = 15;  // places in a window are bytes

  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding = 0;
  bool ceil = false;

  // Inputs of fewer pixels have no window.
  std::int64_t least_size() const { return kernel - 2 * padding - (ceil ? stride - 1 : 0); }
  std::int64_t out_size(std::int64_t in_size) const {
    const std::int64_t windows = (in_size - least_size()) / stride + 1;
    return ceil && (windows - 1) * stride >= in_size + padding ? windows - 1 : windows;
  }
};

// Those that convolutions, norms and linear layers apply. gelu: only norms without a residual, which are not deferred,
// if Ops::norms_apply_gelu().
enum class Activation : std::uint8_t { none, relu, gelu };

// An elementwise function. device/curve.hpp computes it and its derivative.
struct Curve {
  enum class Kind : std::uint8_t {
    relu,
    leaky_relu,  // x above 0, else slope * x
    clip,        // x within [low, high]
    sigmoid,
    tanh,
    gelu,   // x * Phi(x), Phi the normal distribution: nn.GELU() without approximation
    linear  // slope * x + shift
  };
  Kind kind;
  float slope = 0;  // of leaky_relu at least 0
  float low = 0;    // below `high`
  float high = 0;
  float shift = 0;
};

// What Ops::activate_backward reads of y = curve(x): y, which a later layer often keeps anyway. For gelu it is x,
// because two inputs may have one result.
inline const Tensor& saved_for_backward(const Curve& curve, const Tensor& x, const Tensor& y) {
  return curve.kind == Curve::Kind::gelu ? x : y;
}

// Dropout (Srivastava et al. 2014): the elements to be dropped are a pure function of this and of the sample's and
// element's number (device/dropout.hpp).
struct Dropout {
  float ratio;          // probability of each element to be dropped, at least 0 and below 1
  std::uint32_t layer;  // layers have draws of their own
  Tensor key;           // plain fp32, of dropout_key_values()
};

class NormGroup;

// A rank's share of a step has one or more micro-batches. The first one's gradient overwrites, the others add. A
// micro-batch's gradient is computed completely and then added once, element by element, so the sum does not depend on
// which rank computed which micro-batch.
enum class Accumulate : std::uint8_t { overwrite, add };

// Scale and shift of a norm. [c], fp32, stored form.
struct NormWeights {
  Tensor scale;  // gamma
  Tensor shift;  // beta
  float epsilon = 1e-5F;
};

// What forward saves for backward. [c], fp32, except for the ReLU mask: plain u8 [Ops::relu_mask_bytes].
struct NormSaved {
  Tensor mean;
  Tensor inverse_deviation;  // 1 / sqrt(biased variance + epsilon)
  Tensor relu_mask = {};     // of a ReLU that follows a residual addition
  // The norm's parameters for a convolution that computes its gradient sums, see Ops::fuses_norm_reductions(). Has the
  // form of form_after_norm(), or is empty.
  Tensor rows = {};
  // Ranks whose batches, all of this size, share statistics. Null: this rank alone. Requires Device::has_norm_groups().
  NormGroup* group = nullptr;
};

// A batch norm in training. `batch_mean` and `batch_variance` (unbiased, as for PyTorch's running variance) receive
// statistics_scale * value, overwritten or added. They are slots of the flat gradient buffer.
struct BatchNorm {
  NormWeights weights;
  NormSaved saved;
  Tensor batch_mean;
  Tensor batch_variance;
  float statistics_scale;
  Accumulate accumulate;
};

// A norm and an activation that were not applied: the reader of x uses z = activation(norm(x)) instead.
struct DeferredNorm {
  static constexpr std::int64_t rows_per_channel = 5;

  Tensor rows;  // of Ops::form_after_norm(); the content is private to the device
  Activation activation = Activation::none;
};

// A map as its reader uses it: z, or x itself without a deferred norm.
struct NormedMap {
  Tensor x;
  DeferredNorm norm = {};

  bool is_deferred() const { return static_cast<bool>(norm.rows); }
};

// Outputs for the gradients of a norm's scale and shift.
struct NormGradient {
  Tensor inverse_deviation;  // of NormSaved
  Tensor d_scale;
  Tensor d_shift;
  Accumulate accumulate = Accumulate::overwrite;
  NormGroup* group = nullptr;  // of NormSaved
};

// The norm that precedes a convolution. Backward-data computes its gradient sums.
struct PreviousNorm {
  NormedMap x;  // the norm's input, with its rows
  NormGradient gradient = {};
  // Output of the activation if it follows a residual: the gradient passes where y is positive. Otherwise empty.
  Tensor y = {};
};

// A gradient as its reader uses it: dy, or the deferred batch-norm backward of dz. The first convolution that reads it,
// in backward-weight, applies the backward and stores the result in dy.
struct NormedGradient {
  Tensor dy;
  Tensor dz = {};    // gradient of the norm's output; dy may alias it
  NormedMap x = {};  // the norm's input, with its rows as conv_backward_data_norm left them

  bool is_deferred() const { return x.is_deferred(); }
};

// Arguments of Device::make.
struct TensorForm {
  Shape shape;
  DType dtype;
  Layout layout;
};

// Targets of the classification loss.
struct Targets {
  // NOLINTNEXTLINE(google-explicit-constructor): labels alone are targets
  Targets(Tensor of_all, Tensor of_others = {}, Tensor of_first = {})
      : labels(std::move(of_all)), others(std::move(of_others)), shares(std::move(of_first)) {}

  Tensor labels;  // i32 [n]; -1: not counted, gradient zero
  // For mixed samples (mixup); otherwise empty.
  Tensor others;  // i32 [n]: the other label
  Tensor shares;  // fp32 [n]: weight of the first label, 0 to 1; the other label has the rest
};

// Gradient of softmax cross-entropy: d_logits = scale * loss_scale[0] * (softmax - target). An empty d_logits skips it;
// an empty loss_scale means no loss scaling.
struct LogitsGradient {
  Tensor d_logits;    // plain [n, classes]
  Tensor loss_scale;  // [1]; does not affect the loss sums
};

// Sums of softmax cross-entropy over the micro-batches so far: two fp32 elements.
struct LossSums {
  Tensor loss;  // [1] sum over samples of scale * loss
  // [1] number of samples whose largest logit is the label's; with two labels, that of the larger share. Ties: the
  // lowest class, the first label.
  Tensor correct;
};

class Ops {
 public:
  virtual ~Ops() = default;

  // ---- convolution: x features or images [n, h, w, in], weight stored form, y features [n, h', w', out], no bias
  // `sums` (plain u8 [sums_bytes], may be empty) receives the sums of y that norm_forward needs.
  virtual void conv_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y,
                            const Tensor& sums) = 0;
  // For an x without a deferred norm. Accumulating may temporarily use memory of dx's size.
  virtual void conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx,
                                  Accumulate accumulate) = 0;
  virtual void conv_backward_weight(const Conv2d& conv, const NormedMap& x, const NormedGradient& dy,
                                    const Tensor& dweight, Accumulate accumulate) = 0;

  // ---- batch norm over n, h, w, then (+ residual), then activation
  // Training: uses the statistics of this batch. `sums` comes from the convolution that wrote x; if it is empty, x is
  // read once more. `residual` may be empty.
  virtual void norm_forward(const Tensor& x, const Tensor& sums, const BatchNorm& norm, const Tensor& residual,
                            Activation activation, const Tensor& y) = 0;
  // Evaluation: uses the running statistics.
  virtual void norm_infer(const Tensor& x, const NormWeights& weights, const Tensor& running_mean,
                          const Tensor& running_variance, const Tensor& residual, Activation activation,
                          const Tensor& y) = 0;
  virtual bool norms_apply_gelu() const { return false; }
  // Bytes of the ReLU mask of a ReLU that follows a residual addition. 0: the device stores none and reads y.
  virtual std::int64_t relu_mask_bytes(const Shape&) const { return 0; }
  // `y` may be empty without a residual or with a ReLU mask. dx may alias dy. `d_residual` (empty without residual)
  // receives dy with the ReLU mask applied. It may alias dy, but not dx.
  virtual void norm_backward(const Tensor& x, const Tensor& y, const Tensor& dy, const NormWeights& weights,
                             Activation activation, const NormSaved& saved, const Tensor& dx, const Tensor& d_residual,
                             const Tensor& d_scale, const Tensor& d_shift, Accumulate accumulate) = 0;

  // ---- y = activation(x + bias), bias over the last dimension; features or plain [n, c]. y may alias x.
  virtual void bias_forward(const Tensor& x, const Tensor& bias, Activation activation, const Tensor& y) = 0;
  // dx may alias dy.
  virtual void bias_backward(const Tensor& y, const Tensor& dy, Activation activation, const Tensor& dx,
                             const Tensor& d_bias, Accumulate accumulate) = 0;

  // ---- elementwise: features or plain fp32, all of the same shape
  // y may alias x.
  virtual void activate_forward(const Curve& curve, const Tensor& x, const Tensor& y) = 0;
  // `saved`: saved_for_backward(curve, x, y). dx may alias dy.
  virtual void activate_backward(const Curve& curve, const Tensor& saved, const Tensor& dy, const Tensor& dx) = 0;
  // y = x / (1 - ratio), and 0 for dropped elements. The same call computes the gradient dx from dy. y may alias x.
  virtual void drop(const Dropout& dropout, const Tensor& x, const Tensor& y) = 0;
  // y = a + b. y may alias both.
  virtual void add(const Tensor& a, const Tensor& b, const Tensor& y) = 0;
  virtual void copy(const Tensor& x, const Tensor& y) = 0;

  // ---- pooling. `winner` is u8 features: the place in the window, row by row, of the largest value (ties: the first).
  virtual void max_pool_forward(const Pool2d& pool, const Tensor& x, const Tensor& y, const Tensor& winner) = 0;
  virtual void max_pool_backward(const Pool2d& pool, const Tensor& dy, const Tensor& winner, const Tensor& dx) = 0;
  // Means of windows, over their pixels in the map, or with `counts_padding` also over those of the padding.
  virtual void average_pool_forward(const Pool2d& pool, bool counts_padding, const Tensor& x, const Tensor& y) = 0;
  virtual void average_pool_backward(const Pool2d& pool, bool counts_padding, const Tensor& dy, const Tensor& dx) = 0;
  // The binomial blur of Zhang 2019: each channel times [1 2 1] x [1 2 1] / 16 around every stride-th pixel, zeros
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
  // Parameter-free shortcut (He et al. 2015, option A): every stride-th pixel; channels from c on are zero. x [n, h, w,
  // c], y [n, h', w', c'], h' = ceil(h / stride).
  virtual void subsample_forward(std::int64_t stride, const Tensor& x, const Tensor& y) = 0;
  virtual void subsample_backward(std::int64_t stride, const Tensor& dy, const Tensor& dx) = 0;
  // features [n, h, w, c_i] -> features [n, h, w, sum of c_i], and back for the gradients.
  virtual void concat_forward(std::span<const Tensor> x, const Tensor& y) = 0;
  virtual void concat_backward(const Tensor& dy, std::span<const Tensor> dx) = 0;
  // y = x mirrored horizontally; both are `images` of the same shape.
  virtual void mirror(const Tensor& x, const Tensor& y) = 0;
  // y[row, column] = x[row + rows, column + columns]. Beside x are its reflected pixels, see reflected(). Both are
  // `images` of the same shape, which has more rows and columns than the shift.
  virtual void shift(std::int64_t rows, std::int64_t columns, const Tensor& x, const Tensor& y) = 0;

  // ---- linear: x plain [n, in], weight [out, in], y plain [n, out]; always fp32
  virtual void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y) = 0;
  virtual void linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx) = 0;
  virtual void linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight,
                                      Accumulate accumulate) = 0;

  // ---- loss: logits plain [n, classes]
  // target = (1 - smoothing) * onehot + smoothing / classes, as in PyTorch; with two labels, onehot is their mix. Adds
  // to `sums` or overwrites them.
  virtual void softmax_cross_entropy(const Tensor& logits, const Targets& targets, float smoothing, float scale,
                                     const LogitsGradient& gradient, const LossSums& sums, Accumulate accumulate) = 0;

  // ---- kernel choices, as text with one line per layer and direction. They are measured on first use unless imported.
  // Devices that choose by rule measure nothing and return no text.
  virtual bool measures_kernels() const = 0;
  virtual std::string export_plan() const = 0;
  virtual void import_plan(const std::string& plan) = 0;
  // Choices of an earlier run. Used if they still work, otherwise measured again; never an error. export_plan()
  // includes them once they are in use.
  virtual void suggest_plan(const std::string& plan) = 0;

  // ---- deferred batch norm: uses the operations above unless the device overrides all of these
  // Bytes of a convolution's sums for this number of output channels. 0: it computes none.
  virtual std::int64_t sums_bytes(std::int64_t) const { return 0; }
  // The form of what a norm of x leaves in memory for its reader. Here: the norm's result.
  virtual TensorForm form_after_norm(const Tensor& x) const { return {x.shape(), x.dtype(), x.layout()}; }
  // norm_forward and norm_infer for a reader that may apply the norm. Return what it reads. `z` has the form above.
  virtual NormedMap norm_forward_deferred(const Tensor& x, const Tensor& sums, const BatchNorm& norm,
                                          Activation activation, const Tensor& z);
  virtual NormedMap norm_infer_deferred(const Tensor& x, const NormWeights& weights, const Tensor& running_mean,
                                        const Tensor& running_variance, Activation activation, const Tensor& z);
  // conv_backward_data of a convolution that follows a norm. Computes dz, the gradient of the norm's output before its
  // activation, and the gradients of scale and shift. Stores in the norm's rows what NormedGradient needs.
  // Accumulating adds to another reader's gradient, of the activation's output.
  virtual void conv_backward_data_norm(const Conv2d& conv, const Tensor& dy, const Tensor& weight,
                                       const PreviousNorm& front, const Tensor& dz, Accumulate accumulate);
  // Applies the deferred backward of a norm that no convolution precedes: stores the gradient of its input in dy.dy.
  virtual void norm_backward_deferred(const NormedGradient& dy);
  // Whether conv_backward_data_norm also handles norms that were applied, using the rows that norm_forward left.
  virtual bool fuses_norm_reductions() const { return false; }
};

}  // namespace lockstep
