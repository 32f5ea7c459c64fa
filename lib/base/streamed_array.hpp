// An array [rows, width] that is read in blocks of rows, because memory may not hold all of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

struct StreamedArray {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  // Copies rows from `first` on into `values` [rows, width]. If ranks share the array, it is collective, and rank 0
  // alone gets the values.
  std::function<void(std::int64_t first, std::span<float> values)> read;
};

// Of values in memory, which it holds.
inline StreamedArray streamed_array(std::string name, std::vector<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return {std::move(name), count, 1, [held = std::move(values)](std::int64_t first, std::span<float> to) {
            std::copy_n(held.begin() + first, to.size(), to.begin());
          }};
}

// Passes blocks of at most 4 MiB, or of one row, to `take(first row, number of rows)`.
template <class Take>
void for_each_block(std::int64_t rows, std::int64_t width, const Take& take) {
  constexpr std::int64_t elements = 1 << 20;
  const std::int64_t block = std::max<std::int64_t>(1, elements / width);
  for (std::int64_t first = 0; first < rows; first += block) take(first, std::min(block, rows - first));
}

// Reads the whole array. Passes its blocks to `take(values)`.
template <class Take>
void read_blocks(const StreamedArray& array, const Take& take) {
  std::vector<float> values;
  for_each_block(array.rows, array.width, [&](std::int64_t first, std::int64_t count) {
    values.resize(static_cast<std::size_t>(count * array.width));
    array.read(first, values);
    take(std::span<const float>(std::as_const(values)));
  });
}

}  // namespace lockstep
