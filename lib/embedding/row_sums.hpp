// The gradient of an embedding table in a step: (row, values) of the rows that the batch has touched.
//
// Values are added in fixed point (device/flat/fixed_point.hpp), so sums have the same bits in any order. A row may
// occur any number of times in a micro-batch, and micro-batches may be on any ranks. Time and memory depend on the
// number of touched rows, not on the size of the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/flat/fixed_point.hpp"
#include "embedding/row_message.hpp"

namespace lockstep {

// Gradients of different rows, in ascending order of the rows.
struct RowGradients {
  std::vector<std::int64_t> rows;
  std::vector<float> values;  // [rows, width]
};

class RowSums {
 public:
  // `terms`: the largest number of gradients that a step adds to one row, over all ranks. It limits their size, see
  // is_in_range().
  RowSums(std::int64_t width, int terms) : width_(width), form_(fixed_point_for(terms)) {}

  std::int64_t width() const { return width_; }
  // Number of touched rows.
  std::int64_t count() const { return std::ssize(rows_); }
  // `values` [width] are those of one occurrence of the row.
  void add(std::int64_t row, std::span<const float> values);
  // Appends to a message what another rank adds with add_from(): whether all values are in range, and the sums of the
  // rows in `range`.
  void append_to(std::string& message, const RowRange& range) const;
  // Throws Error as RowMessage.
  void add_from(RowMessage& message, const RowRange& range);
  // Whether no value was NaN or outside the range of the fixed point.
  bool is_in_range() const { return is_in_range_; }
  RowGradients gradients() const;
  void clear();

 private:
  std::int64_t* sums_of(std::int64_t row);

  std::int64_t width_;
  FixedPoint form_;
  bool is_in_range_ = true;
  std::unordered_map<std::int64_t, std::size_t> places_;  // of a row in the following
  std::vector<std::int64_t> rows_;
  std::vector<std::int64_t> sums_;  // [rows, width]
};

}  // namespace lockstep
