// Names on flat arrays: values, gradients and batch-norm statistics of a model.
//
// Gradients lie in the order backward produces them, so a bucket is a slice: no packing code exists, the optimizer is
// one pass, and a model file is a few arrays. Layers register their parameters in the order of *forward*; allocate()
// lays the arrays out in reverse. After the gradients, in the same array and so in the same reduction, lie the batch
// statistics of every norm, the sums of loss and correct answers, and a few spare slots:
//
//   reduced   [ gradient of last layer ... gradient of first layer | batch mean and variance of each norm | metric
//   slots ] values    [ weights, in the same order                         | running mean and variance            ]
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/flat/step_record.hpp"
#include "device/tensor.hpp"

namespace lockstep {

// What a parameter does: optimizers treat the roles differently (no weight decay on norms and biases, by option).
enum class ParameterRole { weight, bias, norm_scale, norm_shift };

// The values a parameter starts with; see initialise().
struct Initial {
  enum class Kind { constant, normal, uniform };
  Kind kind;
  float size;  // the value; the standard deviation around 0; or the bound: uniform in [-size, size)
};

struct Parameter {
  std::string name;                // PyTorch's: "layer1.0.conv1.weight"
  std::vector<std::int64_t> dims;  // PyTorch's: [out, in, k, k], [out, in] or [c]
  ParameterKind kind;
  ParameterRole role;
  Initial initial;
  int index;            // position in the store, order of registration
  std::int64_t offset;  // first element in the flat arrays, a multiple of 16
  std::int64_t stored;  // elements there, padding included
  Tensor value;         // stored form; valid after allocate()
  Tensor gradient;

  std::int64_t count() const;  // elements in PyTorch's form
};

// Running mean or variance of a norm: a value that training reads off the batch, not off a gradient.
struct Statistic {
  std::string name;  // "layer1.0.bn1.running_mean"
  std::int64_t channels;
  float initial;        // 0 for means, 1 for variances
  std::int64_t offset;  // in the statistics arrays
  std::int64_t stored;
  Tensor running;  // valid after allocate()
  Tensor batch;    // this step's, summed over parts and ranks
};

// A parameter or statistic by name, with PyTorch's dims and values (host). For files, hashes and tests.
struct NamedValues {
  std::string name;
  std::vector<std::int64_t> dims;
  std::vector<float> values;
};

// The name of weights and running statistics: xxh3-64 over names, dims and fp32 bytes, as 16 hex digits. `entries` are
// in the order of their names, as in files; summary.json and `inspect` print it.
std::string weights_hash(std::span<const NamedValues> entries);

class ParameterStore {
 public:
  // Elements after the statistics, for values that ride along with the last bucket.
  enum MetricSlot : std::int64_t { loss_slot, correct_slot, overflow_slot, stop_slot, metric_slot_count = 16 };

  explicit ParameterStore(Device& device) : device_(device) {}
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  // References stay valid as long as the store.
  Parameter& add(std::string name, std::vector<std::int64_t> dims, ParameterKind kind, ParameterRole role,
                 Initial initial);
  Statistic& add_statistic(std::string name, std::int64_t channels, float initial);

  // Elements of the flat gradient buffer; known once every layer is built.
  std::int64_t reduced_count() const;
  // Lays everything out. `reduced` holds reduced_count() zeros (from AllReducer::allocate, or Device::make_lasting).
  // Parameters are zero afterwards, running statistics have their initial values: see initialise().
  void allocate(const Tensor& reduced);

  std::deque<Parameter>& parameters() { return parameters_; }
  const std::deque<Parameter>& parameters() const { return parameters_; }
  const std::deque<Statistic>& statistics() const { return statistics_; }

  Device& device() const { return device_; }
  const Tensor& values() const { return values_; }    // [gradient_count]
  const Tensor& running() const { return running_; }  // [statistics_count], the running statistics
  const Tensor& reduced() const { return reduced_; }  // gradients, batch statistics, metric slots
  std::int64_t gradient_count() const;                // elements of the gradients alone
  std::int64_t statistics_count() const;
  Tensor gradients() const { return reduced_.slice(0, gradient_count()); }
  Tensor batch_statistics() const { return reduced_.slice(gradient_count(), statistics_count()); }
  Tensor metric_slots() const { return reduced_.slice(gradient_count() + statistics_count(), metric_slot_count); }
  Tensor metric_slots(MetricSlot slot) const { return reduced_.slice(gradient_count() + statistics_count() + slot, 1); }

  // Moves the running statistics a tenth of the way to this step's, unless the verdict in `record` is another than
  // `applied`. Stream-ordered.
  void move_statistics(const StepRecord& record);

  using Entry = NamedValues;
  std::vector<Entry> entries() const;  // in name order
  // The same of arrays that are laid out as values() and running(). Reads nothing else.
  std::vector<Entry> entries_of(const Tensor& values, const Tensor& running) const;
  // What keeps such entries from being this store's: the first few that are missing, unknown, or of another shape, and
  // how many more there are; empty if nothing does.
  std::string misfit(std::span<const Entry> entries) const;
  // Of parameters and statistics, in name order. Both also before allocate().
  std::vector<std::string> names() const;
  // Throws Error(bad_data) naming the first few entries that are missing, unknown, or of another shape, and how many
  // more there are.
  void assign(std::span<const Entry> entries);
  // The same of an optimizer's array [gradient_count], which has a value for each of every parameter.
  std::vector<Entry> entries_of(const Tensor& array) const;
  void assign_to(const Tensor& array, std::span<const Entry> entries);
  std::string weights_hash() const { return lockstep::weights_hash(entries()); }
  std::int64_t parameter_count() const;  // elements of all parameters, in PyTorch's form

 private:
  Device& device_;
  std::deque<Parameter> parameters_;
  std::deque<Statistic> statistics_;
  Tensor values_;
  Tensor running_;
  Tensor reduced_;
};

}  // namespace lockstep
