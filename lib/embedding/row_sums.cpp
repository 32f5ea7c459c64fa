#include "embedding/row_sums.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>

namespace lockstep {
namespace {

constexpr std::size_t word = sizeof(std::int64_t);

void append(std::string& message, std::span<const std::int64_t> values) {
  message.append(reinterpret_cast<const char*>(values.data()), values.size() * word);
}

std::vector<std::int64_t> take(std::string_view& message, std::size_t count) {
  assert(message.size() >= count * word);
  std::vector<std::int64_t> values(count);
  std::memcpy(values.data(), message.data(), count * word);
  message.remove_prefix(count * word);
  return values;
}

}  // namespace

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
std::string RowSums::message() const {
  std::string message;
  message.reserve((2 + rows_.size() + sums_.size()) * word);
  append(message, std::vector<std::int64_t>{is_in_range_ ? 1 : 0, count()});
  append(message, rows_);
  append(message, sums_);
  return message;
}

void RowSums::add_message(std::string_view message) {
  const std::vector<std::int64_t> head = take(message, 2);
  is_in_range_ = is_in_range_ && head[0] == 1;
  const std::vector<std::int64_t> rows = take(message, static_cast<std::size_t>(head[1]));
  const std::vector<std::int64_t> added = take(message, rows.size() * static_cast<std::size_t>(width_));
  const std::int64_t* from = added.data();
  for (const std::int64_t row : rows) {
    std::int64_t* const sums = sums_of(row);
    for (std::int64_t i = 0; i < width_; ++i) sums[i] += *from++;
  }
}

void RowSums::sum_over_ranks(const Communicator& world) {
  if (world.size() == 1) return;
  const std::vector<std::string> messages = world.all_gather(message());
  for (int rank = 0; rank < world.size(); ++rank) {
    if (rank != world.rank()) add_message(messages[static_cast<std::size_t>(rank)]);
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
