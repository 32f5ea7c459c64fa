// A weight of a flat array as a matrix.
#pragma once

#include <cstdint>

namespace lockstep {

// Groups of `lanes` rows lie side by side. A convolution has a row per output channel, and a linear layer one per
// input. Padding is part of the matrix.
struct FlatMatrix {
  std::int64_t first;  // element of the flat array
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t lanes;
  std::int64_t group_stride;   // between elements of neighboring groups
  std::int64_t column_stride;  // between elements of neighboring columns

  std::int64_t at(std::int64_t row, std::int64_t column) const {
    return first + row / lanes * group_stride + column * column_stride + row % lanes;
  }
  std::int64_t groups() const { return (rows + lanes - 1) / lanes; }
  std::int64_t rows_in(std::int64_t group) const { return group + 1 < groups() ? lanes : rows - group * lanes; }
  std::int64_t count() const { return rows * columns; }
};

}  // namespace lockstep
