// An embedding table with the state of its optimizer. A step reads and updates the rows of its batch only.
//
//   table.fetch(rows_of_batch, values);       forward
//   sums.add(row, gradient);                  backward, for each occurrence of a row
//   table.update(sums.gradients());           the end of the step
//
// Weight decay multiplies all rows by 1 - learning_rate * weight_decay in each step. An untouched row is not written:
// its last step is known, and fetch() and update() first apply the decays since then (catch-up). At a constant rate,
// these are a power. With a schedule, the logarithms of all steps' factors are summed up, and two of the sums differ by
// the logarithm of the decays between them. So values are those of dense weight decay, except for rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "embedding/row_blocks.hpp"
#include "embedding/row_rule.hpp"
#include "embedding/row_sums.hpp"

namespace lockstep {

struct TableShape {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t width = 0;
};

// Throws Error(bad_data) if the row is beyond the table.
void require_row(const TableShape& table, std::int64_t row);

// All rows of a table, or those that this rank holds (distributed_table.hpp).
class RowTable {
 public:
  // Checkpoints hold step numbers in fp32.
  static constexpr std::int64_t max_steps = (std::int64_t{1} << 24) - 1;
  using Arrays = std::map<std::string, std::vector<float>>;

  // All values are zero. Throws as row_rule().
  RowTable(std::string name, std::int64_t rows, std::int64_t width, const RowOptimizerOptions& options)
      : RowTable({std::move(name), rows, width}, {0, rows}, options) {}
  RowTable(TableShape shape, const RowRange& held, const RowOptimizerOptions& options);

  const TableShape& shape() const { return shape_; }  // of the whole table
  const std::string& name() const { return shape_.name; }
  std::int64_t rows() const { return shape_.rows; }
  std::int64_t width() const { return shape_.width; }
  const RowRange& held() const { return held_; }
  std::int64_t steps() const { return steps_; }
  // Of values and optimizer state.
  std::int64_t bytes() const;

  // Values of the held rows, with all decays: [rows, width].
  std::vector<float> values() const;
  // Before the first step.
  void set_values(std::span<const float> values);

  // Copies rows, in any order and number, into `values` [rows, width], with all decays. Throws Error(bad_data) if a row
  // is beyond the table, or not held.
  void fetch(std::span<const std::int64_t> rows, std::span<float> values) const;
  // One step of the optimizer. Throws as fetch(), before anything changes.
  void update(const RowGradients& gradients);

  // The complete state, with the table's name before that of each array: an assigned state continues bit for bit.
  Arrays state() const;
  // Throws Error(bad_data) if an array is missing or has another size, or if numbers of steps cannot be.
  void assign(const Arrays& state);
  // Throws likewise, unless it is the state of all rows.
  void require_state(const Arrays& state) const { require_state(state, rows()); }

  // The arrays of the state that have a row for each row of the table. The first one has the values.
  struct Array {
    std::string name;
    std::int64_t width = 0;
  };
  std::vector<Array> arrays() const;
  // The held rows of an array.
  std::span<const float> array(std::size_t index) const;
  std::span<float> array(std::size_t index);
  std::string steps_name() const { return name() + ".steps"; }  // the other array of the state, which has one number
  void set_steps(std::int64_t steps);

 private:
  void require_rows(std::span<const std::int64_t> rows) const;
  void require_state(const Arrays& state, std::int64_t rows) const;
  bool decays() const { return options_.weight_decay != 0; }
  double catch_up_factor(std::int64_t row) const;
  void add_decay_logs();
  template <class Rule>
  void update_rows(const Rule& rule, const RowGradients& gradients);

  TableShape shape_;
  RowRange held_;
  RowOptimizerOptions options_;
  RowRule rule_;
  std::int64_t steps_ = 0;
  std::vector<float> values_;               // [held rows, width]
  std::vector<std::vector<float>> states_;  // [states] of [held rows, width]
  std::vector<float> last_steps_;           // [held rows]: number of steps whose decay the row has; empty without decay
  std::vector<double> decay_logs_;          // [steps + 1]: of 0, 1, ... steps together; empty at a constant rate
};

}  // namespace lockstep
