#include "embedding/row_sums.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace lockstep {
std::int64_t* RowSums::sums_of(std::int64_t row) {
  const auto [place, is_new] = places_.try_emplace(row, rows_.size());
  if (is_new) {
    rows_.push_back(row);
    sums_.resize(sums_.size() + static_cast<std::size_t>(width_));
  }
  return sums_.data() + place->second * static_cast<std::size_t>(width_);
}

void RowSums::add(std::int64_t row, std::span<const float> values) {
  assert(std::ssize(values) == width_);
  std::int64_t* const sums = sums_of(row);
  for (std::size_t i = 0; i < values.size(); ++i) {
    is_in_range_ = is_in_range_ && form_.holds(values[i]);
    sums[i] += form_.fixed(values[i]);
  }
}

// Whether values are in range, the number of rows, the rows, their sums.
void RowSums::append_to(std::string& message, const RowRange& range) const {
  std::vector<std::int64_t> head{is_in_range_ ? 1 : 0, 0};
  std::vector<std::int64_t> sums;
  const auto width = static_cast<std::size_t>(width_);
  for (std::size_t place = 0; place < rows_.size(); ++place) {
    if (!range.contains(rows_[place])) continue;
    head.push_back(rows_[place]);
    const auto first = sums_.begin() + static_cast<std::ptrdiff_t>(place * width);
    sums.insert(sums.end(), first, first + width_);
  }
  head[1] = std::ssize(head) - 2;
  append_numbers<std::int64_t>(message, head);
  append_numbers<std::int64_t>(message, sums);
}

void RowSums::add_from(RowMessage& message, const RowRange& range) {
  const bool is_in_range = message.take<std::int64_t>(1)[0] == 1;
  const std::vector<std::int64_t> rows = message.take_rows(range);
  const std::vector<std::int64_t> added = message.take<std::int64_t>(rows.size() * static_cast<std::size_t>(width_));
  is_in_range_ = is_in_range_ && is_in_range;
  const std::int64_t* from = added.data();
  for (const std::int64_t row : rows) {
    std::int64_t* const sums = sums_of(row);
    for (std::int64_t i = 0; i < width_; ++i) sums[i] += *from++;
  }
}

RowGradients RowSums::gradients() const {
  std::vector<std::size_t> order(rows_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [this](std::size_t place) { return rows_[place]; });
  RowGradients gradients;
  gradients.rows.reserve(rows_.size());
  gradients.values.reserve(sums_.size());
  for (const std::size_t place : order) {
    gradients.rows.push_back(rows_[place]);
    const std::int64_t* const sums = sums_.data() + place * static_cast<std::size_t>(width_);
    for (std::int64_t i = 0; i < width_; ++i) gradients.values.push_back(FixedPoint::value(sums[i]));
  }
  return gradients;
}

void RowSums::clear() {
  places_.clear();
  rows_.clear();
  sums_.clear();
  is_in_range_ = true;
}

}  // namespace lockstep
