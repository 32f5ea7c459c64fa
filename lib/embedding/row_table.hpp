// An embedding table with the state of its optimizer. A step reads and updates the rows of its batch only.
//
//   table.fetch(rows_of_batch, values);       forward
//   sums.add(row, gradient);                  backward, for each occurrence of a row
//   sums.sum_over_ranks(world);
//   table.update(sums.gradients());           the end of the step
//
// Weight decay multiplies all rows by 1 - learning_rate * weight_decay in each step. An untouched row is not written:
// its last step is known, and fetch() and update() first apply the decays since then (catch-up). At a constant rate,
// these are a power. With a schedule, the logarithms of all steps' factors are summed up, and two of the sums differ by
// the logarithm of the decays between them. So values are those of dense weight decay, except for rounding.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "embedding/row_rule.hpp"
#include "embedding/row_sums.hpp"

namespace lockstep {

class RowTable {
 public:
  // Checkpoints hold step numbers in fp32.
  static constexpr std::int64_t max_steps = (std::int64_t{1} << 24) - 1;
  using Arrays = std::map<std::string, std::vector<float>>;

  // All values are zero. Throws as row_rule().
  RowTable(std::string name, std::int64_t rows, std::int64_t width, const RowOptimizerOptions& options);

  const std::string& name() const { return name_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t width() const { return width_; }
  std::int64_t steps() const { return steps_; }
  // Of values and optimizer state.
  std::int64_t bytes() const;

  // Values of all rows, with all decays: [rows, width].
  std::vector<float> values() const;
  // Before the first step.
  void set_values(std::span<const float> values);

  // Copies rows, in any order and number, into `values` [rows, width], with all decays. Throws Error(bad_data) if a row
  // is beyond the table.
  void fetch(std::span<const std::int64_t> rows, std::span<float> values) const;
  // One step of the optimizer. Throws as fetch(), before anything changes.
  void update(const RowGradients& gradients);

  // The complete state, with the table's name before that of each array: an assigned state continues bit for bit.
  Arrays state() const;
  // Throws Error(bad_data) if an array is missing or has another size, or if numbers of steps cannot be.
  void assign(const Arrays& state);

 private:
  void require_rows(std::span<const std::int64_t> rows) const;
  double catch_up_factor(std::int64_t row) const;
  void add_decay_logs();
  template <class Rule>
  void update_rows(const Rule& rule, const RowGradients& gradients);

  std::string name_;
  std::int64_t rows_;
  std::int64_t width_;
  RowOptimizerOptions options_;
  RowRule rule_;
  std::int64_t steps_ = 0;
  std::vector<float> values_;               // [rows, width]
  std::vector<std::vector<float>> states_;  // [states] of [rows, width]
  std::vector<float> last_steps_;           // [rows]: number of steps whose decay the row has; empty without decay
  std::vector<double> decay_logs_;          // [steps + 1]: of 0, 1, ... steps together; empty at a constant rate
};

}  // namespace lockstep
