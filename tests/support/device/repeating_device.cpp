#include "support/device/repeating_device.hpp"

#include <array>
#include <cassert>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "device/conv_problem.hpp"
#include "device/flat/flat_passes.hpp"
#include "device/flat/matrix_passes.hpp"
#include "device/plan_line.hpp"

namespace lockstep {
namespace {

// Calls in the order in which they were asked, while somebody records; else they run at once.
class Calls {
 public:
  void keep(std::function<void()> call) {
    if (recorded_ == nullptr) {
      call();
    } else {
      recorded_->push_back(std::move(call));
    }
  }
  std::vector<std::function<void()>> record(const std::function<void()>& work) {
    std::vector<std::function<void()>> calls;
    recorded_ = &calls;
    work();
    recorded_ = nullptr;
    return calls;
  }

 private:
  std::vector<std::function<void()>>* recorded_ = nullptr;
};

// The same memory, which a recording does not own.
Tensor unowned(const Tensor& tensor) {
  return {tensor.data(), tensor.bytes(), tensor.shape(), tensor.dtype(), tensor.layout()};
}
std::vector<Tensor> unowned(std::span<const Tensor> tensors) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) result.push_back(unowned(tensor));
  return result;
}
NormWeights unowned(const NormWeights& weights) {
  return {unowned(weights.scale), unowned(weights.shift), weights.epsilon};
}
NormSaved unowned(const NormSaved& saved) {
  return {unowned(saved.mean), unowned(saved.inverse_deviation), unowned(saved.relu_mask)};
}
BatchNorm unowned(const BatchNorm& norm) {
  return {unowned(norm.weights),        unowned(norm.saved),   unowned(norm.batch_mean),
          unowned(norm.batch_variance), norm.statistics_scale, norm.accumulate};
}
Targets unowned(const Targets& targets) {
  return {unowned(targets.labels), unowned(targets.others), unowned(targets.shares)};
}
LossSums unowned(const LossSums& sums) { return {unowned(sums.loss), unowned(sums.correct)}; }
LogitsGradient unowned(const LogitsGradient& gradient) {
  return {unowned(gradient.d_logits), unowned(gradient.loss_scale)};
}

class RepeatingOps final : public Ops {
 public:
  RepeatingOps(Ops& inner, Calls& calls) : inner_(inner), calls_(calls) {}

  void conv_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y,
                    [[maybe_unused]] const Tensor& sums) override {
    assert(!x.is_deferred() && !sums);
    choose(Direction::forward, conv, x.x);
    keep([this, conv, x = unowned(x.x), weight = unowned(weight), y = unowned(y)] {
      inner_.conv_forward(conv, {x}, weight, y, Tensor());
    });
  }
  void conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx,
                          Accumulate accumulate) override {
    choose(Direction::backward_data, conv, dx);
    keep([this, conv, dy = unowned(dy), weight = unowned(weight), dx = unowned(dx), accumulate] {
      inner_.conv_backward_data(conv, dy, weight, dx, accumulate);
    });
  }
  void conv_backward_weight(const Conv2d& conv, const NormedMap& x, const NormedGradient& dy, const Tensor& dweight,
                            Accumulate accumulate) override {
    assert(!x.is_deferred() && !dy.is_deferred());
    choose(Direction::backward_weight, conv, x.x);
    keep([this, conv, x = unowned(x.x), dy = unowned(dy.dy), dweight = unowned(dweight), accumulate] {
      inner_.conv_backward_weight(conv, {x}, {dy}, dweight, accumulate);
    });
  }
  void norm_forward(const Tensor& x, [[maybe_unused]] const Tensor& sums, const BatchNorm& norm, const Tensor& residual,
                    Activation activation, const Tensor& y) override {
    assert(!sums);
    keep([this, x = unowned(x), norm = unowned(norm), residual = unowned(residual), activation, y = unowned(y)] {
      inner_.norm_forward(x, Tensor(), norm, residual, activation, y);
    });
  }
  void norm_infer(const Tensor& x, const NormWeights& weights, const Tensor& running_mean,
                  const Tensor& running_variance, const Tensor& residual, Activation activation,
                  const Tensor& y) override {
    keep([this, x = unowned(x), weights = unowned(weights), running_mean = unowned(running_mean),
          running_variance = unowned(running_variance), residual = unowned(residual), activation,
          y = unowned(y)] { inner_.norm_infer(x, weights, running_mean, running_variance, residual, activation, y); });
  }
  void norm_backward(const Tensor& x, const Tensor& y, const Tensor& dy, const NormWeights& weights,
                     Activation activation, const NormSaved& saved, const Tensor& dx, const Tensor& d_residual,
                     const Tensor& d_scale, const Tensor& d_shift, Accumulate accumulate) override {
    keep([this, x = unowned(x), y = unowned(y), dy = unowned(dy), weights = unowned(weights), activation,
          saved = unowned(saved), dx = unowned(dx), d_residual = unowned(d_residual), d_scale = unowned(d_scale),
          d_shift = unowned(d_shift), accumulate] {
      inner_.norm_backward(x, y, dy, weights, activation, saved, dx, d_residual, d_scale, d_shift, accumulate);
    });
  }
  std::int64_t relu_mask_bytes(const Shape& y) const override { return inner_.relu_mask_bytes(y); }
  void bias_forward(const Tensor& x, const Tensor& bias, Activation activation, const Tensor& y) override {
    keep([this, x = unowned(x), bias = unowned(bias), activation, y = unowned(y)] {
      inner_.bias_forward(x, bias, activation, y);
    });
  }
  void bias_backward(const Tensor& y, const Tensor& dy, Activation activation, const Tensor& dx, const Tensor& d_bias,
                     Accumulate accumulate) override {
    keep([this, y = unowned(y), dy = unowned(dy), activation, dx = unowned(dx), d_bias = unowned(d_bias), accumulate] {
      inner_.bias_backward(y, dy, activation, dx, d_bias, accumulate);
    });
  }
  void activate_forward(const Curve& curve, const Tensor& x, const Tensor& y) override {
    keep([this, curve, x = unowned(x), y = unowned(y)] { inner_.activate_forward(curve, x, y); });
  }
  void activate_backward(const Curve& curve, const Tensor& saved, const Tensor& dy, const Tensor& dx) override {
    keep([this, curve, saved = unowned(saved), dy = unowned(dy), dx = unowned(dx)] {
      inner_.activate_backward(curve, saved, dy, dx);
    });
  }
  void drop(const Dropout& dropout, const Tensor& x, const Tensor& y) override {
    keep([this, dropout = Dropout{dropout.ratio, dropout.layer, unowned(dropout.key)}, x = unowned(x), y = unowned(y)] {
      inner_.drop(dropout, x, y);
    });
  }
  void add(const Tensor& a, const Tensor& b, const Tensor& y) override {
    keep([this, a = unowned(a), b = unowned(b), y = unowned(y)] { inner_.add(a, b, y); });
  }
  void copy(const Tensor& x, const Tensor& y) override {
    keep([this, x = unowned(x), y = unowned(y)] { inner_.copy(x, y); });
  }
  void max_pool_forward(const Pool2d& pool, const Tensor& x, const Tensor& y, const Tensor& winner) override {
    keep([this, pool, x = unowned(x), y = unowned(y), winner = unowned(winner)] {
      inner_.max_pool_forward(pool, x, y, winner);
    });
  }
  void max_pool_backward(const Pool2d& pool, const Tensor& dy, const Tensor& winner, const Tensor& dx) override {
    keep([this, pool, dy = unowned(dy), winner = unowned(winner), dx = unowned(dx)] {
      inner_.max_pool_backward(pool, dy, winner, dx);
    });
  }
  void average_pool_forward(const Pool2d& pool, bool counts_padding, const Tensor& x, const Tensor& y) override {
    keep([this, pool, counts_padding, x = unowned(x), y = unowned(y)] {
      inner_.average_pool_forward(pool, counts_padding, x, y);
    });
  }
  void average_pool_backward(const Pool2d& pool, bool counts_padding, const Tensor& dy, const Tensor& dx) override {
    keep([this, pool, counts_padding, dy = unowned(dy), dx = unowned(dx)] {
      inner_.average_pool_backward(pool, counts_padding, dy, dx);
    });
  }
  void blur_forward(std::int64_t stride, const Tensor& x, const Tensor& y) override {
    keep([this, stride, x = unowned(x), y = unowned(y)] { inner_.blur_forward(stride, x, y); });
  }
  void blur_backward(std::int64_t stride, const Tensor& dy, const Tensor& dx) override {
    keep([this, stride, dy = unowned(dy), dx = unowned(dx)] { inner_.blur_backward(stride, dy, dx); });
  }
  void mean_pool_forward(const Tensor& x, const Tensor& y) override {
    keep([this, x = unowned(x), y = unowned(y)] { inner_.mean_pool_forward(x, y); });
  }
  void mean_pool_backward(const Tensor& dy, const Tensor& dx) override {
    keep([this, dy = unowned(dy), dx = unowned(dx)] { inner_.mean_pool_backward(dy, dx); });
  }
  void flatten_forward(const Tensor& x, const Tensor& y) override {
    keep([this, x = unowned(x), y = unowned(y)] { inner_.flatten_forward(x, y); });
  }
  void flatten_backward(const Tensor& dy, const Tensor& dx) override {
    keep([this, dy = unowned(dy), dx = unowned(dx)] { inner_.flatten_backward(dy, dx); });
  }
  void concat_forward(std::span<const Tensor> x, const Tensor& y) override {
    keep([this, x = unowned(x), y = unowned(y)] { inner_.concat_forward(x, y); });
  }
  void concat_backward(const Tensor& dy, std::span<const Tensor> dx) override {
    keep([this, dy = unowned(dy), dx = unowned(dx)] { inner_.concat_backward(dy, dx); });
  }
  void mirror(const Tensor& x, const Tensor& y) override {
    keep([this, x = unowned(x), y = unowned(y)] { inner_.mirror(x, y); });
  }
  void shift(std::int64_t rows, std::int64_t columns, const Tensor& x, const Tensor& y) override {
    keep([this, rows, columns, x = unowned(x), y = unowned(y)] { inner_.shift(rows, columns, x, y); });
  }
  void subsample_forward(std::int64_t stride, const Tensor& x, const Tensor& y) override {
    keep([this, stride, x = unowned(x), y = unowned(y)] { inner_.subsample_forward(stride, x, y); });
  }
  void subsample_backward(std::int64_t stride, const Tensor& dy, const Tensor& dx) override {
    keep([this, stride, dy = unowned(dy), dx = unowned(dx)] { inner_.subsample_backward(stride, dy, dx); });
  }
  void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y) override {
    keep([this, x = unowned(x), weight = unowned(weight), y = unowned(y)] { inner_.linear_forward(x, weight, y); });
  }
  void linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx) override {
    keep([this, dy = unowned(dy), weight = unowned(weight), dx = unowned(dx)] {
      inner_.linear_backward_data(dy, weight, dx);
    });
  }
  void linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight,
                              Accumulate accumulate) override {
    keep([this, x = unowned(x), dy = unowned(dy), dweight = unowned(dweight), accumulate] {
      inner_.linear_backward_weight(x, dy, dweight, accumulate);
    });
  }
  void softmax_cross_entropy(const Tensor& logits, const Targets& targets, float smoothing, float scale,
                             const LogitsGradient& gradient, const LossSums& sums, Accumulate accumulate) override {
    keep([this, logits = unowned(logits), targets = unowned(targets), smoothing, scale, gradient = unowned(gradient),
          sums = unowned(sums),
          accumulate] { inner_.softmax_cross_entropy(logits, targets, smoothing, scale, gradient, sums, accumulate); });
  }
  bool measures_kernels() const override { return true; }
  std::string export_plan() const override {
    std::string text;
    for (const auto& [problem, kernel] : plan_) text += problem + " = " + kernel + "\n";
    return text;
  }
  void import_plan(const std::string& plan) override { read(plan, plan_); }
  void suggest_plan(const std::string& plan) override { read(plan, suggested_); }

 private:
  using Plan = std::map<std::string, std::string>;

  void keep(std::function<void()> call) { calls_.keep(std::move(call)); }

  static void read(const std::string& text, Plan& plan) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const std::optional<PlanLine> entry = split_plan_line(line);
      if (entry) plan.insert_or_assign(std::string(entry->problem), std::string(entry->kernel));
    }
  }

  // A convolution met for the first time is measured, or taken as suggested.
  void choose(Direction direction, const Conv2d& conv, const Tensor& x) {
    const ConvProblem problem{direction, conv, x.shape()[0], x.shape()[1], x.shape()[2], x.layout(), DType::f32};
    const auto suggested = suggested_.find(problem.text());
    plan_.emplace(problem.text(), suggested == suggested_.end() ? "the only one" : suggested->second);
  }

  Ops& inner_;
  Plan plan_;
  Plan suggested_;
  Calls& calls_;
};

class RepeatingUpdate final : public FlatUpdate {
 public:
  RepeatingUpdate(std::unique_ptr<FlatUpdate> inner, Calls& calls) : inner_(std::move(inner)), calls_(calls) {}
  void run(const StepRecord& record) override {
    calls_.keep([this, &record] { inner_->run(record); });
  }

 private:
  std::unique_ptr<FlatUpdate> inner_;
  Calls& calls_;
};

class RepeatingMatrixPasses final : public MatrixPasses {
 public:
  RepeatingMatrixPasses(MatrixPasses& inner, Calls& calls) : inner_(inner), calls_(calls) {}

  FlatMatrix matrix_of(std::span<const std::int64_t> dims, std::int64_t first) const override {
    return inner_.matrix_of(dims, first);
  }
  void take_momentum(const Tensor& gradients, const FlatMatrix& matrix, const MatrixMomentum& momentum,
                     const StepRecord& record, const Tensor& velocity, const Tensor& direction) override {
    calls_.keep([this, gradients = unowned(gradients), matrix, momentum, &record, velocity = unowned(velocity),
                 direction = unowned(direction)] {
      inner_.take_momentum(gradients, matrix, momentum, record, velocity, direction);
    });
  }
  void add_polynomial(const Tensor& matrix, const std::array<float, 3>& factors, const Tensor& square) override {
    calls_.keep([this, matrix = unowned(matrix), factors, square = unowned(square)] {
      inner_.add_polynomial(matrix, factors, square);
    });
  }
  void put(const Tensor& wide, const FlatMatrix& matrix, const Tensor& values) override {
    calls_.keep([this, wide = unowned(wide), matrix, values = unowned(values)] { inner_.put(wide, matrix, values); });
  }

 private:
  MatrixPasses& inner_;
  Calls& calls_;
};

class RepeatingFlatPasses final : public FlatPasses {
 public:
  RepeatingFlatPasses(FlatPasses& inner, Calls& calls)
      : inner_(inner), calls_(calls), matrices_(inner.matrices(), calls) {}

  MatrixPasses& matrices() override { return matrices_; }

  std::unique_ptr<FlatUpdate> make_update(const UpdateRule& rule, std::span<const UpdateRun> runs,
                                          const UpdateArrays& arrays) override {
    return std::make_unique<RepeatingUpdate>(inner_.make_update(rule, runs, arrays), calls_);
  }
  std::unique_ptr<FlatUpdate> make_clip(const GradientClip& clip, const UpdateArrays& arrays) override {
    return std::make_unique<RepeatingUpdate>(inner_.make_clip(clip, arrays), calls_);
  }
  void follow(const Tensor& values, const EmaRule& rule, const Tensor& mean, const StepRecord& record) override {
    calls_.keep([this, values = unowned(values), rule, mean = unowned(mean), &record] {
      inner_.follow(values, rule, mean, record);
    });
  }
  void exchange(const Tensor& values, const Tensor& other) override {
    calls_.keep([this, values = unowned(values), other = unowned(other)] { inner_.exchange(values, other); });
  }
  void copy(const Tensor& other, const Tensor& values) override {
    calls_.keep([this, other = unowned(other), values = unowned(values)] { inner_.copy(other, values); });
  }
  void subtract(const Tensor& a, const Tensor& b, float factor, const Tensor& difference) override {
    calls_.keep([this, a = unowned(a), b = unowned(b), factor, difference = unowned(difference)] {
      inner_.subtract(a, b, factor, difference);
    });
  }
  void renew_copies(const Tensor& values) override {
    calls_.keep([this, values = unowned(values)] { inner_.renew_copies(values); });
  }
  void set(const Tensor& values, float value) override {
    calls_.keep([this, values = unowned(values), value] { inner_.set(values, value); });
  }
  void judge(const Tensor& metric_slots, const MetricSlots& places, const StepRecord& record) override {
    calls_.keep(
        [this, metric_slots = unowned(metric_slots), places, &record] { inner_.judge(metric_slots, places, record); });
  }
  void average(const Tensor& batch, float momentum, const Tensor& running, const StepRecord& record) override {
    calls_.keep([this, batch = unowned(batch), momentum, running = unowned(running), &record] {
      inner_.average(batch, momentum, running, record);
    });
  }
  std::int64_t overflow_counters() const override { return inner_.overflow_counters(); }
  void count_overflows(const Tensor& values, float limit, const Tensor& counters, Accumulate accumulate) override {
    calls_.keep([this, values = unowned(values), limit, counters = unowned(counters), accumulate] {
      inner_.count_overflows(values, limit, counters, accumulate);
    });
  }
  void sum_overflows(const Tensor& counters, const Tensor& count) override {
    calls_.keep(
        [this, counters = unowned(counters), count = unowned(count)] { inner_.sum_overflows(counters, count); });
  }
  void sum_fixed(const Tensor& values, const FixedPoint& form, const Tensor& sums, Accumulate accumulate) override {
    calls_.keep([this, values = unowned(values), form, sums = unowned(sums), accumulate] {
      inner_.sum_fixed(values, form, sums, accumulate);
    });
  }
  void values_of_fixed(const Tensor& sums, const Tensor& values) override {
    calls_.keep([this, sums = unowned(sums), values = unowned(values)] { inner_.values_of_fixed(sums, values); });
  }

 private:
  FlatPasses& inner_;
  Calls& calls_;
  RepeatingMatrixPasses matrices_;
};

class ReplayingGraph final : public CapturedGraph {
 public:
  ReplayingGraph(Device& device, Calls& calls) : device_(device), calls_(calls) {}

  void run(const std::function<void()>& work) override {
    if (runs_++ == 0) {
      work();
      return;
    }
    if (runs_ == 2) recorded_ = calls_.record(work);
    // What the calls take as scratch memory must not be what lies between them, which nobody owns now.
    const Tensor between = device_.make(Shape{device_.peak_bytes()}, DType::u8, Layout::plain);
    for (const std::function<void()>& call : recorded_) call();
  }

 private:
  Device& device_;
  Calls& calls_;
  int runs_ = 0;
  std::vector<std::function<void()>> recorded_;
};

class RepeatingDevice final : public Device {
 public:
  RepeatingDevice(std::unique_ptr<Device> inner, Recordings graphs) : inner_(std::move(inner)), graphs_(graphs) {}

  Ops& ops() override { return ops_; }
  FlatPasses& flat() override { return flat_; }
  std::string description() const override { return inner_->description() + ", repeating"; }
  std::string plan_conditions() const override { return inner_->plan_conditions(); }
  DType precision() const override { return inner_->precision(); }
  DType image_dtype() const override { return inner_->image_dtype(); }
  Tensor make(const Shape& shape, DType dtype, Layout layout) override { return inner_->make(shape, dtype, layout); }
  Tensor make_persistent(std::int64_t count, DType dtype) override { return inner_->make_persistent(count, dtype); }
  void read(const Tensor& tensor, std::span<float> values) override { inner_->read(tensor, values); }
  void write(std::span<const float> values, const Tensor& tensor) override { inner_->write(values, tensor); }
  std::int64_t stored_count(ParameterKind kind, std::span<const std::int64_t> dims) const override {
    return inner_->stored_count(kind, dims);
  }
  void store(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> values,
             const Tensor& stored) override {
    inner_->store(kind, dims, values, stored);
  }
  void load(ParameterKind kind, std::span<const std::int64_t> dims, const Tensor& stored,
            std::span<float> values) override {
    inner_->load(kind, dims, stored, values);
  }
  std::unique_ptr<CapturedGraph> make_captured_graph() override {
    if (graphs_ == Recordings::called) return inner_->make_captured_graph();
    return std::make_unique<ReplayingGraph>(*inner_, calls_);
  }
  void synchronize() override { inner_->synchronize(); }
  std::int64_t peak_bytes() const override { return inner_->peak_bytes(); }

 private:
  std::unique_ptr<Device> inner_;
  Recordings graphs_;
  Calls calls_;
  RepeatingOps ops_{inner_->ops(), calls_};
  RepeatingFlatPasses flat_{inner_->flat(), calls_};
};

}  // namespace

std::unique_ptr<Device> make_repeating_device(std::unique_ptr<Device> inner, Recordings graphs) {
  return std::make_unique<RepeatingDevice>(std::move(inner), graphs);
}

}  // namespace lockstep
