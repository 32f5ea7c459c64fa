// Named parameters and statistics of a model, stored in flat arrays: values, gradients and batch-norm statistics.
//
// Gradients lie in the order in which backward produces them. So a bucket is a slice, and gradients need no packing.
// The optimizer is one pass, and a model file is a few arrays. Layers register parameters in the order of *forward*;
// allocate() lays the arrays out in reverse. The flat gradient buffer also holds the batch statistics and the metric
// slots, so that one reduction covers all of them:
//
//   reduced  [ gradients, last layer ... first layer | batch mean and variance per norm   | metric slots ]
//   values   [ weights, in the same order            | running mean and variance per norm ]
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/flat/step_record.hpp"
#include "device/tensor.hpp"

namespace lockstep {

// Role of a parameter. Optimizers may treat roles differently, for example no weight decay on norms and biases.
enum class ParameterRole { weight, bias, norm_scale, norm_shift };

// Initial values of a parameter; see initialize().
struct Initial {
  enum class Kind { constant, normal, uniform };
  Kind kind;
  float size;  // constant: the value; normal: the standard deviation, mean 0; uniform: the bound of [-size, size)
  // Of a convolution: the first filters, one for each input channel, pass that channel on unchanged, as far as there
  // are filters (torch.nn.init.dirac_).
  bool begins_with_identity = false;
};

struct Parameter {
  std::string name;                // PyTorch's name: "layer1.0.conv1.weight"
  std::vector<std::int64_t> dims;  // PyTorch's shape: [out, in, rows, columns], [out, in] or [c]
  ParameterKind kind;
  ParameterRole role;
  Initial initial;
  int index;            // position in the store, in order of registration
  std::int64_t offset;  // of the first element in the flat arrays, a multiple of 16
  std::int64_t stored;  // number of stored elements, including padding
  Tensor value;         // in the device's layout; valid after allocate()
  Tensor gradient;
  bool learns = true;  // false: its gradient is zero, and backward computes none; set before the first forward

  std::int64_t count() const;  // number of elements without padding
};

// Running mean or variance of a batch norm. Training computes it from the batch, not from a gradient.
struct Statistic {
  std::string name;  // "layer1.0.bn1.running_mean"
  std::int64_t channels;
  float initial;        // 0 for means, 1 for variances
  std::int64_t offset;  // into the statistics arrays
  std::int64_t stored;
  Tensor running;  // valid after allocate()
  Tensor batch;    // this step's, summed over micro-batches and ranks
};

// A parameter or statistic as host values: its name, PyTorch's shape and the values. For files, hashes and tests.
struct NamedValues {
  std::string name;
  std::vector<std::int64_t> dims;
  std::vector<float> values;
};

// Hash of weights and running statistics: xxh3-64 over names, dims and fp32 bytes, as 16 hex digits. `entries` must be
// sorted by name, as in files. summary.json and `inspect` print it.
std::string weights_hash(std::span<const NamedValues> entries);

class ParameterStore {
 public:
  // Elements after the statistics, reduced with the last bucket.
  enum MetricSlot : std::int64_t {
    loss_slot,
    correct_slot,
    overflow_slot,
    stop_slot,
    failure_slot,
    metric_slot_count = 16
  };

  explicit ParameterStore(Device& device) : device_(device) {}
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  // References stay valid as long as the store.
  Parameter& add(std::string name, std::vector<std::int64_t> dims, ParameterKind kind, ParameterRole role,
                 Initial initial);
  Statistic& add_statistic(std::string name, std::int64_t channels, float initial);

  // Elements of the flat gradient buffer; final once every layer is built.
  std::int64_t gradient_buffer_count() const;
  // Lays out all arrays. `reduced` holds gradient_buffer_count() zeros (from AllReducer::allocate, or
  // Device::make_persistent), and `values` gradient_count() zeros for the weights; empty: the store makes it.
  // Afterwards parameters are zero and running statistics have their initial values; see initialize().
  void allocate(const Tensor& reduced, const Tensor& values = {});

  std::deque<Parameter>& parameters() { return parameters_; }
  const std::deque<Parameter>& parameters() const { return parameters_; }
  const std::deque<Statistic>& statistics() const { return statistics_; }

  Device& device() const { return device_; }
  const Tensor& values() const { return values_; }    // [gradient_count]
  const Tensor& running() const { return running_; }  // [statistics_count], the running statistics
  const Tensor& gradient_buffer() const {
    return gradient_buffer_;
  }                                     // [gradient_buffer_count]: gradients, batch statistics, metric slots
  std::int64_t gradient_count() const;  // elements of the gradients alone, including padding
  std::int64_t statistics_count() const;
  Tensor gradients() const { return gradient_buffer_.slice(0, gradient_count()); }
  Tensor batch_statistics() const { return gradient_buffer_.slice(gradient_count(), statistics_count()); }
  Tensor metric_slots() const {
    return gradient_buffer_.slice(gradient_count() + statistics_count(), metric_slot_count);
  }
  Tensor metric_slots(MetricSlot slot) const {
    return gradient_buffer_.slice(gradient_count() + statistics_count() + slot, 1);
  }

  // Updates the running statistics, unless the verdict in `record` differs from `applied`. Stream-ordered.
  void update_running_statistics(const StepRecord& record);

  // The weight of a step's statistics in the running ones; at first PyTorch's default for batch norm, 0.1.
  void set_statistics_momentum(float momentum) { statistics_momentum_ = momentum; }

  using Entry = NamedValues;
  using TakeEntry = std::function<void(Entry)>;
  std::vector<Entry> entries() const;  // sorted by name
  // Entries of arrays in the layout of values() and running(). Reads nothing else.
  std::vector<Entry> entries_of(const Tensor& values, const Tensor& running) const;
  // The same, one entry at a time, so that only one is in memory.
  void visit(const Tensor& values, const Tensor& running, const TakeEntry& take) const;
  // Why such entries do not fit this store: the first few that are missing, unknown, or of another shape, and how many
  // more. Empty if they fit. May be called before allocate().
  std::string misfit(std::span<const Entry> entries) const;
  // Names of parameters and statistics, sorted. May be called before allocate().
  std::vector<std::string> names() const;
  // Throws Error(bad_data) naming the first few entries that are missing, unknown, or of another shape, and how many
  // more.
  void assign(std::span<const Entry> entries) { assign_to(values_, running_, entries); }
  void assign_to(const Tensor& values, const Tensor& running, std::span<const Entry> entries);
  // The same for an optimizer's state array [gradient_count], which has one value per parameter element.
  std::vector<Entry> entries_of(const Tensor& array) const;
  void visit(const Tensor& array, const TakeEntry& take) const;
  void assign_to(const Tensor& array, std::span<const Entry> entries);
  std::string weights_hash() const { return lockstep::weights_hash(entries()); }
  std::int64_t parameter_count() const;  // elements of all parameters, without padding

 private:
  Device& device_;
  float statistics_momentum_ = 0.1F;
  std::deque<Parameter> parameters_;
  std::deque<Statistic> statistics_;
  Tensor values_;
  Tensor running_;
  Tensor gradient_buffer_;
};

}  // namespace lockstep
