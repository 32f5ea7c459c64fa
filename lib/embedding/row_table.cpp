#include "embedding/row_table.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.hpp"

namespace lockstep {
namespace {

void decay(std::span<float> values, double factor) {
  if (factor == 1) return;
  for (float& value : values) value = static_cast<float>(static_cast<double>(value) * factor);
}

}  // namespace

void require_row(const TableShape& table, std::int64_t row) {
  require(row >= 0 && row < table.rows, Failure::bad_data,
          "row {} is beyond the embedding table '{}', which has {} rows. Use the data that the table was made for.",
          row, table.name, table.rows);
}

RowTable::RowTable(TableShape shape, const RowRange& held, const RowOptimizerOptions& options)
    : shape_(std::move(shape)), held_(held), options_(options), rule_(row_rule(options)) {
  const auto count = static_cast<std::size_t>(held.count * width());
  values_.assign(count, 0.0F);
  states_.assign(state_names(rule_).size(), std::vector<float>(count, 0.0F));
  if (decays()) last_steps_.assign(static_cast<std::size_t>(held.count), 0.0F);
  add_decay_logs();
}

// Of the steps done. A pure function of the schedule, so the state does not have them.
void RowTable::add_decay_logs() {
  if (!decays() || !options_.schedule) return;
  if (decay_logs_.empty()) decay_logs_.push_back(0);
  for (std::int64_t step = std::ssize(decay_logs_) - 1; step < steps_; ++step) {
    const double decay = static_cast<double>(options_.rate_at(step)) * static_cast<double>(options_.weight_decay);
    decay_logs_.push_back(decay_logs_.back() + std::log1p(-decay));
  }
}

std::int64_t RowTable::bytes() const {
  return static_cast<std::int64_t>(sizeof(float)) *
         (std::ssize(values_) * (1 + std::ssize(states_)) + std::ssize(last_steps_));
}

std::vector<float> RowTable::values() const {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(held_.count));
  std::iota(rows.begin(), rows.end(), held_.first);
  std::vector<float> values(values_.size());
  fetch(rows, values);
  return values;
}

void RowTable::set_values(std::span<const float> values) {
  assert(values.size() == values_.size() && steps_ == 0);
  std::ranges::copy(values, values_.begin());
}

void RowTable::require_rows(std::span<const std::int64_t> rows) const {
  for (const std::int64_t row : rows) {
    require_row(shape_, row);
    require(held_.contains(row), Failure::bad_data,
            "row {} of the embedding table '{}' is not held here: this rank has {} rows from row {} on. Fetch it from "
            "the rank that holds it.",
            row, name(), held_.count, held_.first);
  }
}

double RowTable::catch_up_factor(std::int64_t row) const {
  if (!decays()) return 1;
  const auto last = static_cast<std::int64_t>(last_steps_[static_cast<std::size_t>(row - held_.first)]);
  if (!decay_logs_.empty()) return std::exp(decay_logs_.back() - decay_logs_[static_cast<std::size_t>(last)]);
  const std::int64_t missed = steps_ - last;
  const double kept = 1 - static_cast<double>(options_.learning_rate) * static_cast<double>(options_.weight_decay);
  return integer_power(kept, missed);
}

void RowTable::fetch(std::span<const std::int64_t> rows, std::span<float> values) const {
  assert(std::ssize(values) == std::ssize(rows) * width());
  require_rows(rows);
  const auto columns = static_cast<std::size_t>(width());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::span<float> to = values.subspan(i * columns, columns);
    std::copy_n(values_.begin() + (rows[i] - held_.first) * width(), columns, to.begin());
    decay(to, catch_up_factor(rows[i]));
  }
}

template <class Rule>
void RowTable::update_rows(const Rule& rule, const RowGradients& gradients) {
  const StepRates step{options_.rate_at(steps_), 1, static_cast<float>(steps_ + 1)};
  const typename Rule::Rates rates = rule.rates(step, UpdateRun{0, 0, options_.weight_decay}, {});
  const float* gradient = gradients.values.data();
  for (const std::int64_t row : gradients.rows) {
    const auto first = static_cast<std::size_t>((row - held_.first) * width());
    const std::span<float> values = std::span(values_).subspan(first, static_cast<std::size_t>(width()));
    decay(values, catch_up_factor(row));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::array<float, 2> state{};
      for (std::size_t s = 0; s < Rule::states; ++s) state[s] = states_[s][first + i];
      rule(rates, *gradient++, state.data(), values[i]);
      for (std::size_t s = 0; s < Rule::states; ++s) states_[s][first + i] = state[s];
    }
    if (decays()) last_steps_[static_cast<std::size_t>(row - held_.first)] = static_cast<float>(steps_ + 1);
  }
}

void RowTable::update(const RowGradients& gradients) {
  assert(std::ssize(gradients.values) == std::ssize(gradients.rows) * width() && steps_ < max_steps);
  require_rows(gradients.rows);
  std::visit([&](const auto& rule) { update_rows(rule, gradients); }, rule_);
  ++steps_;
  add_decay_logs();
}

std::vector<RowTable::Array> RowTable::arrays() const {
  std::vector<Array> arrays = {{name() + ".values", width()}};
  for (const std::string& state : state_names(rule_)) arrays.push_back({name() + "." + state, width()});
  if (decays()) arrays.push_back({name() + ".last_steps", 1});
  return arrays;
}

std::span<const float> RowTable::array(std::size_t index) const {
  if (index == 0) return values_;
  return index <= states_.size() ? states_[index - 1] : last_steps_;
}

std::span<float> RowTable::array(std::size_t index) {
  const std::span<const float> same = std::as_const(*this).array(index);
  return {const_cast<float*>(same.data()), same.size()};
}

RowTable::Arrays RowTable::state() const {
  Arrays state = {{steps_name(), {static_cast<float>(steps_)}}};
  std::size_t index = 0;
  for (const Array& described : arrays()) {
    const std::span<const float> values = array(index++);
    state.emplace(described.name, std::vector<float>(values.begin(), values.end()));
  }
  return state;
}

void RowTable::require_state(const Arrays& state, std::int64_t rows) const {
  const auto require_array = [&](const std::string& array, std::int64_t size) {
    const auto found = state.find(array);
    require(
        found != state.end() && std::ssize(found->second) == size, Failure::bad_data,
        "the state of the embedding table '{}' does not fit: the array '{}' {}. Use the state of a table with {} rows "
        "of width {} and the same optimizer.",
        name(), array, found == state.end() ? "is missing" : "has another size", rows, width());
  };
  require_array(steps_name(), 1);
  for (const Array& described : arrays()) require_array(described.name, rows * described.width);
  const float steps = state.at(steps_name())[0];
  const auto is_step = [](float step, float most) { return step >= 0 && step <= most && step == std::floor(step); };
  const bool are_steps = is_step(steps, static_cast<float>(max_steps)) &&
                         (!decays() || std::ranges::all_of(state.at(arrays().back().name),
                                                           [&](float step) { return is_step(step, steps); }));
  require(are_steps, Failure::bad_data,
          "the state of the embedding table '{}' is damaged: it has numbers of steps that cannot be. Use another "
          "checkpoint.",
          name());
}

void RowTable::assign(const Arrays& state) {
  require_state(state, held_.count);
  std::size_t index = 0;
  for (const Array& described : arrays()) std::ranges::copy(state.at(described.name), array(index++).begin());
  set_steps(static_cast<std::int64_t>(state.at(steps_name())[0]));
}

void RowTable::set_steps(std::int64_t steps) {
  steps_ = steps;
  decay_logs_.clear();
  add_decay_logs();
}

}  // namespace lockstep
